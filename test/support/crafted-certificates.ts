/** Certificates that no well-meaning authority issues, by the program of OpenSSL. */
import { execFileSync } from 'node:child_process';
import { createPrivateKey, sign, X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { bitString, der, elementsOf, sequence, type DerElement } from '../../src/testing/der.js';
import { temporaryDirectory } from './temporary-directory.js';

/** A certificate, its key, and the authorities between it and the root, PEM. */
export interface Crafted {
  readonly certificate: string;
  readonly above: string;
  readonly key: string;
}

/** The extensions of an authority, as lines of OpenSSL's configuration. */
export const AUTHORITY = ['basicConstraints=critical,CA:true', 'keyUsage=critical,keyCertSign,cRLSign'];

/** Issues a certificate with these extensions and no others; self-signed if there is no issuer. */
export function craft(extensions: readonly string[], issuer?: Crafted): Crafted {
  const directory = temporaryDirectory();
  const file = (name: string, text = ''): string => {
    writeFileSync(join(directory, name), text);
    return join(directory, name);
  };
  const [key, certificate] = [file('key.pem'), file('certificate.pem')];
  const config = ['[req]', 'distinguished_name=dn', '[dn]', '[v3]', ...extensions].join('\n');
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-new', '-nodes', '-days', '1', '-subj', `/CN=${directory.slice(-6)}`],
      ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-keyout', key, '-out', certificate],
      ...['-config', file('openssl.cnf', config), '-extensions', 'v3'],
      ...(issuer
        ? ['-CA', file('ca.pem', issuer.certificate), '-CAkey', file('ca-key.pem', issuer.key)]
        : []),
    ],
    { stdio: 'pipe' },
  );
  const own = readFileSync(certificate, 'utf8');
  const above = issuer && issuer.above + (isRoot(issuer) ? '' : issuer.certificate);
  return { certificate: own, above: above ?? '', key: readFileSync(key, 'utf8') };
}

/** The same certificate with its last extension twice. */
export function withRepetition(crafted: Crafted, issuer: Crafted): Crafted {
  const { raw } = new X509Certificate(crafted.certificate);
  const [body = NOTHING, algorithm = NOTHING] = elementsIn(elementsOf(raw)[0]);
  const parts = elementsIn(body);
  const list = elementsIn(elementsIn(parts.pop())[0]).map(({ whole }) => whole);
  const extensions = der(0xa3, sequence(...list, ...list.slice(-1)));
  const toSign = sequence(...parts.map(({ whole }) => whole), extensions);
  const signature = bitString(sign('sha256', toSign, createPrivateKey(issuer.key)));
  const certificate = new X509Certificate(sequence(toSign, algorithm.whole, signature)).toString();
  return { ...crafted, certificate };
}

const NOTHING: DerElement = { tag: 0, content: Buffer.alloc(0), whole: Buffer.alloc(0) };

function elementsIn({ content }: DerElement = NOTHING): DerElement[] {
  return elementsOf(content);
}

function isRoot({ certificate }: Crafted): boolean {
  const { subject, issuer } = new X509Certificate(certificate);
  return subject === issuer;
}
