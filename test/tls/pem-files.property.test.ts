/**
 * PEM files as people and programs write them: where OpenSSL finds certificates and keys, `TlsFiles` finds them, too. Where a
 * file is damaged, OpenSSL stops reading and tells nobody; `TlsFiles` rejects it. It takes more than OpenSSL does, for example
 * files that were joined without a line break.
 */
import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';

import fc from 'fast-check';
import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';
import { TlsError, TlsFiles, type TlsCredentials, type TlsPaths } from 'resilient-watcher/tls';
import { expect, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

/** With what each has issued. */
const AUTHORITIES = ['one', 'two', 'three'].map((name) => {
  const signer = new CertificateSigner({ name });
  const { chain, key } = signer.issue({ commonName: name });
  const { raw: der, subject } = new X509Certificate(signer.certificate);
  return { subject, der, chain, key: createPrivateKey(key) };
});

interface Block {
  readonly label: string;
  readonly der: Buffer;
}

const certificates = fc.record({
  label: fc.constantFrom('CERTIFICATE', 'X509 CERTIFICATE'),
  der: fc.constantFrom(...AUTHORITIES.map(({ der }) => der)),
});

const keys = fc.constantFrom(
  ...AUTHORITIES.flatMap(({ key }) => [
    { label: 'PRIVATE KEY', der: key.export({ type: 'pkcs8', format: 'der' }) },
    { label: 'EC PRIVATE KEY', der: key.export({ type: 'sec1', format: 'der' }) },
  ]),
);

const others = fc.constantFrom(
  { label: 'EC PARAMETERS', der: Buffer.from('06082a8648ce3d030107', 'hex') },
  { label: 'X509 CRL', der: Buffer.alloc(100) },
  { label: 'CERTIFICATE REQUEST', der: Buffer.alloc(100) },
);

/** The lines of a block, with blanks at their ends. */
const linesOf = (blocks: fc.Arbitrary<Block>): fc.Arbitrary<string[]> =>
  fc
    .tuple(blocks, fc.constantFrom(64, 76, 4, 254, 9_999), fc.constantFrom('', ' ', ' \t'))
    .map(([{ label, der }, width, blanks]) => {
      const body = der.toString('base64').match(new RegExp(`.{1,${width}}`, 'g')) ?? [];
      return [`-----BEGIN ${label}-----`, ...body, `-----END ${label}-----`].map((line) => line + blanks);
    });

/** What is no block. */
const texts = fc.constantFrom(
  [''],
  ['', ' \t', ''],
  ['# one -> two'],
  ['subject=CN = one', 'issuer=CN = two'],
  ['Bag Attributes', '    friendlyName: Grüße', 'Key Attributes: <No Attributes>'],
  ['-----', '--- BEGIN ---', '----BEGIN CERTIFICATE----'],
  ['# -----BEGIN CERTIFICATE-----', '# MIIB', '# -----END CERTIFICATE-----'],
  ['x'.repeat(300)],
);

/** The lines of a file. */
const linesWith = (blocks: fc.Arbitrary<Block>): fc.Arbitrary<string[]> =>
  fc
    .array(fc.oneof(linesOf(blocks), linesOf(blocks), linesOf(others), texts), { minLength: 1, maxLength: 6 })
    .map((parts) => parts.flat());

/** A file with these lines. */
const filesOf = (lines: fc.Arbitrary<string[]>): fc.Arbitrary<string> =>
  fc
    .tuple(fc.constantFrom('', '\ufeff'), lines, fc.constantFrom('\n', '\r\n'), fc.boolean())
    .map(([mark, all, lineBreak, isEnded]) => mark + all.join(lineBreak) + (isEnded ? lineBreak : ''));

/** Lines of which a few are lost, there twice, cut off, or have something before them. */
const damaged = (lines: fc.Arbitrary<string[]>): fc.Arbitrary<string[]> => {
  const ways = fc.constantFrom<(line: string) => string[]>(
    () => [],
    (line) => [line, line],
    (line) => [line.slice(0, -2)],
    (line) => [` ${line}`],
    (line) => [`# ${line}`],
    (line) => ['', line],
    (line) => ['Comment: none', '', line],
  );
  const damages = fc.array(fc.tuple(fc.nat(), ways), { minLength: 1, maxLength: 3 });
  return fc.tuple(lines, damages).map(([whole, all]) => {
    const left = whole.map((line) => [line]);
    for (const [at, way] of all) left[at % left.length] = way(whole[at % left.length] ?? '');
    return left.flat();
  });
};

/** The set in these files, or why there is none. */
async function read(contents: Partial<Record<keyof TlsPaths, string>>): Promise<TlsCredentials | TlsError> {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  volume.publish(contents);
  const paths = Object.fromEntries(Object.keys(contents).map((name) => [name, volume.path(name)]));
  const files = new TlsFiles(paths, { backend: new ScriptedBackend(), resyncIntervalMs: 0 });
  try {
    return await files.get();
  } catch (error) {
    expect(error).toBeInstanceOf(TlsError);
    return error as TlsError;
  } finally {
    await files.close();
  }
}

/** The authorities that OpenSSL finds in a bundle: it tells the issuer of a certificate if it is one of them. */
function foundByOpenssl(ca: string): string[] {
  const found = AUTHORITIES.filter(({ chain, key }) => {
    const pem = key.export({ type: 'pkcs8', format: 'pem' });
    const { context } = createSecureContext({ ca, cert: chain, key: pem }) as {
      readonly context: { getIssuer(): Buffer | null | undefined };
    };
    return Boolean(context.getIssuer());
  });
  return found.map(({ subject }) => subject).sort();
}

function foundIn({ authorities }: TlsCredentials): string[] {
  return [...new Set(authorities.map(({ subject }) => subject))].sort();
}

const BOUNDS = { numRuns: 40 };

test('a CA bundle has the certificates that OpenSSL finds in it, whatever is written around them', async () => {
  await fc.assert(
    fc.asyncProperty(filesOf(linesWith(certificates)), async (ca) => {
      const set = await read({ ca });
      expect(set instanceof TlsError ? [] : foundIn(set)).toEqual(foundByOpenssl(ca));
    }),
    BOUNDS,
  );
});

test('a CA bundle that is damaged is rejected, or has all that OpenSSL finds in it', async () => {
  await fc.assert(
    fc.asyncProperty(filesOf(damaged(linesWith(certificates))), async (ca) => {
      const set = await read({ ca });
      if (!(set instanceof TlsError))
        expect(foundIn(set)).toEqual(expect.arrayContaining(foundByOpenssl(ca)));
    }),
    BOUNDS,
  );
});

test('a key is the one that Node.js reads from the file, whatever is written around it', async () => {
  await fc.assert(
    fc.asyncProperty(filesOf(linesWith(keys)), async (key) => {
      let known: KeyObject | undefined;
      try {
        known = createPrivateKey(key);
      } catch {
        // There is none.
      }
      const owner = AUTHORITIES.find((each) => known?.equals(each.key));
      const set = await read({ cert: (owner ?? AUTHORITIES[0])?.chain ?? '', key });
      const pem = owner?.key.export({ type: 'pkcs8', format: 'pem' });
      expect(set instanceof TlsError ? undefined : String(set.key)).toBe(pem);
    }),
    BOUNDS,
  );
});
