/**
 * Examines certificates for a diagnosis, by what `TlsFiles` does with them:
 *
 * | at the path                                     | is examined as                                  |
 * |-------------------------------------------------|-------------------------------------------------|
 * | a directory with `tls.crt` or `tls.key`         | a set, which has to be whole                    |
 * | `NAME.crt` beside `NAME.key`                    | a pair                                          |
 * | a file with certificates and a private key      | a credential bundle                             |
 * | other certificates                              | a CA bundle, or the chain of a pair             |
 * | `.crt` and `.pem` without PEM (DER, empty)      | a certificate that cannot be read               |
 * | `.crl`, and files with revocation lists         | revocation lists                                |
 */
import { readdir } from 'node:fs/promises';
import { basename, dirname, extname } from 'node:path';

import { nodeFileSystem } from '../core/ports/builtins.js';
import { systemClock } from '../core/ports/clock.js';
import { told } from '../core/ports/platform-path.js';
import { systemRandom } from '../core/ports/random.js';
import { run } from '../core/scheduling/steps.js';
import { within, withoutTrailingSlashes } from '../fs/absolute-path.js';
import { lookupsOf, readContents } from '../fs/calls.js';
import { stableRead } from '../fs/stable-read.js';
import { targetAt } from '../fs/targets/target-at.js';
import { validityOf } from './certificates.js';
import { inspectChain, whyExpired } from './chain.js';
import { hasPrivateKey, parseCertificates, parseLists } from './pem.js';
import { inspectLists } from './revocation.js';
import { TlsError } from './tls-error.js';
import { tlsLayout, type TlsPaths } from './tls-paths.js';
import { expiredError, MAX_BYTES, parseSet } from './tls-set.js';

const BEGIN = '-----BEGIN ';

/** A mounted certificate has a few files beside it. */
const MAX_FILES = 16;

const LIMITS = { maxContentBytes: MAX_BYTES, maxTotalBytes: 64 * MAX_BYTES, maxFiles: 1_000 };

/** Why a set is not used, or what only some clients reject about it. */
export interface CertificateProblem {
  readonly kind: 'rejected' | 'expired' | 'chain';
  readonly message: string;
}

/**
 * What is wrong with the certificates in a file, or in the files of a directory.
 * @param path absolute.
 * @param realPath every link resolved; for a volume, its revision.
 */
export async function examineCertificates(
  path: string,
  realPath: string,
  now: number,
): Promise<CertificateProblem[]> {
  const entries = await readdir(realPath).catch(() => undefined);
  const names = (entries ?? [basename(path)]).filter((name) => !name.startsWith('..'));
  const directory = entries ? withoutTrailingSlashes(path) : dirname(path);
  const siblings = entries ?? (await readdir(directory).catch(() => []));
  const pairs = [...new Set(names.map((name) => basename(name, extname(name))))]
    .filter((stem) => siblings.includes(`${stem}.crt`) && siblings.includes(`${stem}.key`))
    .map((stem) => ({ cert: at(directory, `${stem}.crt`), key: at(directory, `${stem}.key`) }));
  const isSecret = entries?.some((name) => name === 'tls.crt' || name === 'tls.key');
  const problems = await Promise.all([
    ...(isSecret ? [inSet(path, now)] : []),
    ...pairs.map((pair) => inSet(pair, now)),
    ...names.slice(0, MAX_FILES).map((name) => {
      const file = at(directory, name);
      return inFile(file, entries ? at(realPath, name) : realPath, now);
    }),
  ]);
  return [...new Map(problems.flat().map((problem) => [problem.message, problem])).values()];
}

function at(directory: string, name: string): string {
  return told(within(directory, name));
}

async function inSet(given: string | TlsPaths, now: number): Promise<CertificateProblem[]> {
  const layout = tlsLayout(given);
  try {
    const ports = { fs: nodeFileSystem, clock: systemClock, random: systemRandom };
    const snapshot = await stableRead(targetAt(layout.target, LIMITS), ports);
    const path = [layout.target].flat().join(', ');
    const parsing = { now, path, revision: undefined, previous: undefined, expiryWarningMs: 0 };
    const { warnings, refusal } = parseSet(layout.locate(snapshot), parsing);
    if (refusal) return problemOf(refusal);
    return warnings.map((message) => ({ kind: 'chain', message }));
  } catch (error) {
    return problemOf(error);
  }
}

async function inFile(path: string, realPath: string, now: number): Promise<CertificateProblem[]> {
  try {
    // Without waiting: /proc has files that are read like pipes.
    const reading = await run(readContents(lookupsOf(nodeFileSystem, false), realPath, MAX_BYTES));
    if (!reading?.bytes) return [];
    const bytes = Buffer.from(reading.bytes);
    const text = bytes.toString('latin1');
    // cert-manager writes an empty one if the issuer has no CA.
    if (basename(path) === 'ca.crt' && text.trim() === '') return [];
    if (extname(path) === '.crl' || text.includes(`${BEGIN}X509 CRL-`)) {
      const { warnings } = inspectLists(path, parseLists(path, bytes), [], now);
      return warnings.map((message) => ({ kind: 'expired', message }));
    }
    const isOther = extname(path) === '.pem' ? text.includes(BEGIN) : extname(path) !== '.crt';
    if (isOther && !text.includes(`${BEGIN}CERTIFICATE-`) && !text.includes(`${BEGIN}X509 CERTIFICATE-`))
      return [];
    if (hasPrivateKey(bytes)) return await inSet(path, now);
    const chain = parseCertificates(path, bytes, 'ERR_TLS_PEM');
    if (chain[0].ca) {
      const expired = whyExpired(path, chain, now);
      return expired ? [{ kind: 'expired', message: expired.message }] : [];
    }
    const { expiresAt } = validityOf(chain[0]);
    const { warnings } = inspectChain(path, chain, now);
    return [
      ...(expiresAt <= now ? problemOf(expiredError(path, { expiresAt })) : []),
      ...warnings.map((message) => ({ kind: 'chain', message }) as const),
    ];
  } catch (error) {
    return problemOf(error);
  }
}

/** What cannot be read is found in other ways; a passphrase is not known here. */
function problemOf(error: unknown): CertificateProblem[] {
  if (!(error instanceof TlsError) || error.message.includes('is protected by a passphrase')) return [];
  const { code, message } = error;
  return [{ kind: code === 'ERR_TLS_EXPIRED' ? 'expired' : 'rejected', message }];
}
