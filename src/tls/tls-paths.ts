import { checkPath, describe } from '../core/options.js';
import { absolutePath, within } from '../fs/absolute-path.js';
import type { FileState, Snapshot } from '../fs/snapshot.js';

/** The paths of certificates and their key. Either `cert` and `key`, or `ca`, or all three. */
export interface TlsPaths {
  /** The certificate chain, PEM; the certificate first, then its issuers. */
  readonly cert?: string | URL | undefined;
  /** The private key of the first certificate, PEM, without a passphrase. */
  readonly key?: string | URL | undefined;
  /** The CA bundle, PEM. */
  readonly ca?: string | URL | undefined;
}

/** One of the files that `TlsFiles` reads. */
export type TlsPart = 'cert' | 'key' | 'ca';

/** The keys of a Secret of type `kubernetes.io/tls`, with the CA that cert-manager adds. */
const KEYS: Readonly<Record<TlsPart, string>> = { cert: 'tls.crt', key: 'tls.key', ca: 'ca.crt' };

const PARTS = ['cert', 'key', 'ca'] as const;

/** The paths to watch, the required parts, and where each part is in a snapshot. */
export interface TlsLayout {
  readonly target: string | readonly string[];
  readonly required: readonly TlsPart[];
  /** The directory of all parts; undefined if each has a path of its own. */
  readonly directory: string | undefined;
  pathOf(part: TlsPart): string;
  find(snapshot: Snapshot, part: TlsPart): FileState | undefined;
}

/**
 * The layout of a mounted Secret, or of files at any paths.
 * @throws {TypeError} for anything else, and for a certificate without a key or a key without a certificate.
 */
export function tlsLayout(given: string | URL | TlsPaths): TlsLayout {
  if (typeof given === 'string' || given instanceof URL) {
    const directory = absolutePath(checkPath('TlsFiles', 'directory', given));
    return {
      target: directory,
      required: ['cert', 'key'],
      directory,
      pathOf: (part) => within(directory, KEYS[part]),
      find: ({ files }, part) => files.get(KEYS[part]),
    };
  }
  if (typeof given !== 'object' || (given as unknown) === null) {
    throw new TypeError(`TlsFiles: expected a directory or { cert, key, ca }, got ${describe(given)}`);
  }
  const unknown = Object.keys(given).find((name) => !(PARTS as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`TlsFiles: unknown path "${unknown}"; known are ${PARTS.join(', ')}`);
  }
  const required = PARTS.filter((part) => given[part] !== undefined);
  if (required.length === 0 || (given.cert === undefined) !== (given.key === undefined)) {
    throw new TypeError('TlsFiles: paths must name cert and key, or ca, or all three');
  }
  const paths = new Map(
    required.map((part) => [part, absolutePath(checkPath('TlsFiles', part, given[part]))]),
  );
  const pathOf = (part: TlsPart): string => paths.get(part) ?? part;
  return {
    // A certificate and its key may be in one file.
    target: [...new Set(paths.values())],
    required,
    directory: undefined,
    pathOf,
    find: ({ files }, part) => (required.includes(part) ? files.get(pathOf(part)) : undefined),
  };
}
