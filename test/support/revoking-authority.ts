/** A certificate authority that publishes revocation lists, by the program of OpenSSL. */
import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll } from 'vitest';

import type { CertificatePair } from './certificates.js';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

/** When a list was made and when the next one is due. Default: an hour ago, and in a day. */
interface ListDates {
  readonly from?: number;
  readonly until?: number;
}

/** To be created outside of tests. */
export class RevokingAuthority {
  /** PEM. */
  readonly cert: string;
  readonly #directory = mkdtempSync(join(tmpdir(), 'authority-'));
  readonly #issuer: RevokingAuthority | undefined;

  constructor(name: string, issuer?: RevokingAuthority) {
    afterAll(() => rmSync(this.#directory, { recursive: true, force: true }));
    this.#issuer = issuer;
    this.cert = this.#certify('ca', `/O=Example, Inc./CN=${name}`, issuer ?? this, [
      'basicConstraints=critical,CA:true',
      'keyUsage=critical,keyCertSign,cRLSign',
    ]);
  }

  /** For `localhost`, with the authorities below the root. */
  issue(name: string): CertificatePair {
    const cert = this.#certify(name, `/CN=${name}`, this, ['subjectAltName=DNS:localhost']);
    const key = readFileSync(this.#file(`${name}.key`), 'utf8');
    return { cert: this.#issuer ? cert + this.cert : cert, key };
  }

  /** A list of these certificates, or of these serial numbers, PEM. */
  list(revoked: readonly (CertificatePair | string)[], { from, until }: ListDates = {}): string {
    const now = Date.now();
    const entries = revoked.map((given) => {
      const serial = typeof given === 'string' ? given : new X509Certificate(given.cert).serialNumber;
      return `R\t491231235959Z\t250101000000Z\t${serial}\tunknown\t/CN=x\n`;
    });
    writeFileSync(this.#file('index'), entries.join(''));
    writeFileSync(this.#file('number'), '01');
    writeFileSync(
      this.#file('ca.cnf'),
      '[ca]\ndefault_ca=d\n[d]\ndatabase=index\ncrlnumber=number\ndefault_md=sha256\ncertificate=ca.crt\nprivate_key=ca.key\n',
    );
    const dates = [
      '-crl_lastupdate',
      timeOf(from ?? now - HOUR_MS),
      '-crl_nextupdate',
      timeOf(until ?? now + DAY_MS),
    ];
    return this.#openssl('ca', '-config', 'ca.cnf', '-gencrl', ...dates);
  }

  #file(name: string): string {
    return join(this.#directory, name);
  }

  #openssl(...args: readonly string[]): string {
    return execFileSync('openssl', args, { cwd: this.#directory, stdio: 'pipe', encoding: 'utf8' });
  }

  #certify(name: string, subject: string, issuer: RevokingAuthority, extensions: readonly string[]): string {
    const config = ['[req]', 'distinguished_name=dn', '[dn]', '[v3]', ...extensions].join('\n');
    writeFileSync(this.#file('req.cnf'), config);
    const by =
      name === 'ca' && issuer === this
        ? []
        : ['-CA', issuer.#file('ca.crt'), '-CAkey', issuer.#file('ca.key')];
    this.#openssl(
      ...['req', '-x509', '-new', '-nodes', '-days', '30', '-subj', subject, '-newkey', 'ec'],
      ...['-pkeyopt', 'ec_paramgen_curve:P-256', '-keyout', `${name}.key`, '-out', `${name}.crt`],
      ...['-config', 'req.cnf', '-extensions', 'v3', ...by],
    );
    return readFileSync(this.#file(`${name}.crt`), 'utf8');
  }
}

/** The same list in DER. */
export function derOf(list: string): Buffer {
  return Buffer.from(list.split('-----')[2] ?? '', 'base64');
}

function timeOf(epochMs: number): string {
  return `${new Date(epochMs).toISOString().replace(/\D/g, '').slice(0, 14)}Z`;
}
