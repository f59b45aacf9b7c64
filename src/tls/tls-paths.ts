import { told, toldPath } from '../core/ports/platform-path.js';
import { checkPath, describe } from '../core/options/options.js';
import { within } from '../fs/absolute-path.js';
import { FileSnapshot, type Snapshot } from '../fs/snapshot.js';

/**
 * The paths of certificates and their key: `cert` and `key`, or `bundle`, each with or without `passphrase`, `ca` and
 * `crl`; or only `ca`, with or without `crl`.
 */
export interface TlsPaths {
  /** The certificate chain, PEM; the certificate first, then its issuers. */
  readonly cert?: string | URL | undefined;
  /** The private key of the first certificate, PEM. */
  readonly key?: string | URL | undefined;
  /** A credential bundle: the private key and the certificate chain in one PEM file, as in a pod certificate. */
  readonly bundle?: string | URL | undefined;
  /** A file with the passphrase of the key, UTF-8; one line break at its end does not belong to it. */
  readonly passphrase?: string | URL | undefined;
  /** The CA bundle, PEM. */
  readonly ca?: string | URL | undefined;
  /**
   * The revocation lists: PEM, or one in DER. As soon as there is one, OpenSSL refuses the certificates of each CA that
   * has no valid list: of every CA in a chain, also the root.
   */
  readonly crl?: string | URL | undefined;
}

/** The place of a part of the set in a snapshot. */
export interface TlsPlace {
  readonly path: string;
  /** Undefined if the file does not exist; its contents if they come from no file. */
  readonly file: FileSnapshot | Buffer | undefined;
}

/** The parts of the set. An absent part is not needed. */
export interface TlsPlaces {
  readonly cert?: TlsPlace | undefined;
  readonly key?: TlsPlace | undefined;
  readonly passphrase?: TlsPlace | undefined;
  readonly ca?: TlsPlace | undefined;
  readonly crl?: TlsPlace | undefined;
}

/** What to watch, and where each part is in a snapshot. */
export interface TlsLayout {
  readonly target: string | readonly string[];
  readonly locate: (snapshot: Snapshot) => TlsPlaces;
}

/** The paths of any files, by name. What they mean is known to the option `parse`. */
export type NamedPaths = Readonly<Record<string, string | URL>>;

/** The keys of a Secret of type `kubernetes.io/tls`, with the CA that cert-manager adds. */
const SECRET = { cert: 'tls.crt', key: 'tls.key', ca: 'ca.crt' };

const PATHS = ['cert', 'key', 'bundle', 'passphrase', 'ca', 'crl'] as const;

/**
 * The layout of a mounted Secret, of a credential bundle, or of files at any paths.
 * @throws {TypeError} for anything else, and for a certificate without a key or a key without a certificate.
 */
export function tlsLayout(given: string | URL | TlsPaths): TlsLayout {
  if (isPath(given)) return onePath(given);
  mustBePaths(given);
  const unknown = Object.keys(given).find((name) => !(PATHS as readonly string[]).includes(name));
  if (unknown !== undefined) {
    const fix = 'with the option "parse", files have any names';
    throw new TypeError(`TlsFiles: unknown path "${unknown}"; known are ${PATHS.join(', ')}; ${fix}`);
  }
  return namedPaths(given);
}

function namedPaths(given: TlsPaths): TlsLayout {
  const names = PATHS.filter((name) => given[name] !== undefined);
  const isWhole = (given.cert === undefined) === (given.key === undefined);
  const identities = [given.cert ?? given.key, given.bundle].filter((path) => path !== undefined);
  const isUsable = identities.length === 1 || (identities.length === 0 && given.ca !== undefined);
  if (!isUsable || !isWhole || (given.passphrase !== undefined && identities.length === 0)) {
    const wanted =
      'cert and key, or bundle, each with or without passphrase, ca and crl; or only ca, with or without crl';
    throw new TypeError(`TlsFiles: paths must name ${wanted}; got ${names.join(', ') || 'none'}`);
  }
  const { target, locate } = anyLayout(given as NamedPaths);
  return {
    target,
    locate: (snapshot) => {
      const { bundle, cert = bundle, key = bundle, passphrase, ca, crl } = locate(snapshot);
      return { cert, key, passphrase, ca, crl };
    },
  };
}

/**
 * All files by name, for the option `parse`.
 * @throws {TypeError} for something that is neither a path nor paths by name.
 */
export function anyLayout(given: string | URL | NamedPaths): {
  readonly target: string | readonly string[];
  readonly locate: (snapshot: Snapshot) => Readonly<Record<string, TlsPlace>>;
} {
  if (isPath(given)) {
    const byName = ([name, file]: readonly [string, FileSnapshot]): [string, TlsPlace] => [
      name,
      { path: file.path, file },
    ];
    return {
      target: onePath(given).target,
      locate: ({ files }) => Object.fromEntries([...files].map(byName)),
    };
  }
  mustBePaths(given);
  const named = Object.entries(given).filter(([, path]) => (path as unknown) !== undefined);
  if (named.length === 0) throw new TypeError('TlsFiles: expected paths by name, got none');
  const paths = named.map(([name, path]) => [name, toldPath(checkPath('TlsFiles', name, path))] as const);
  return {
    // A certificate and its key may be in one file.
    target: [...new Set(paths.map(([, path]) => path))],
    locate: ({ files }) =>
      Object.fromEntries(paths.map(([name, path]) => [name, { path, file: files.get(path) }])),
  };
}

function isPath(given: unknown): given is string | URL {
  return typeof given === 'string' || given instanceof URL;
}

/** @throws {TypeError} */
function mustBePaths(given: unknown): void {
  if (typeof given === 'object' && given !== null) return;
  const wanted = 'a directory or a credential bundle, { bundle, ca } or { cert, key, ca, crl }';
  throw new TypeError(`TlsFiles: expected ${wanted}, got ${describe(given)}`);
}

/** A directory or a credential bundle, which is not known before it is read. */
function onePath(given: string | URL): TlsLayout {
  const path = toldPath(checkPath('TlsFiles', 'directory', given));
  return {
    target: path,
    locate: (snapshot) => {
      if (snapshot.kind === 'file' || (snapshot.kind === 'missing' && path.endsWith('.pem'))) {
        const bundle = { path, file: snapshot.kind === 'file' ? snapshot : undefined };
        return { cert: bundle, key: bundle };
      }
      const { files } = snapshot;
      const place = (name: string): TlsPlace => ({ path: told(within(path, name)), file: files.get(name) });
      const hasCa = !isBlank(files.get(SECRET.ca));
      return { cert: place(SECRET.cert), key: place(SECRET.key), ...(hasCa && { ca: place(SECRET.ca) }) };
    },
  };
}

/** cert-manager writes an empty `ca.crt` if the issuer has no CA; templates add a line break. */
function isBlank(file: FileSnapshot | undefined): boolean {
  return !file || FileSnapshot.bytesOf(file)?.toString('latin1').trim() === '';
}
