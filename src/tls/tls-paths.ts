import { insidePath, told } from '../core/ports/platform-path.js';
import { checkPath, describe } from '../core/options/options.js';
import { within } from '../fs/absolute-path.js';
import { FileSnapshot, type Snapshot } from '../fs/snapshot.js';

/**
 * The paths of certificates and their key: `cert` and `key`, or `bundle`, or `pfx`, each with or without `passphrase` and
 * `ca`; or only `ca`.
 */
export interface TlsPaths {
  /** The certificate chain, PEM; the certificate first, then its issuers. */
  readonly cert?: string | URL | undefined;
  /** The private key of the first certificate, PEM. */
  readonly key?: string | URL | undefined;
  /** A credential bundle: the private key and the certificate chain in one PEM file, as in a pod certificate. */
  readonly bundle?: string | URL | undefined;
  /**
   * A PKCS#12 file with a key and its certificates, such as `keystore.p12` of cert-manager; the ciphers of older readers
   * (3DES, RC2) included. Other authorities in it go into the chain, and are not trusted.
   */
  readonly pfx?: string | URL | undefined;
  /** A file with the passphrase of the key or of the PKCS#12 file, UTF-8; one line break at its end does not belong to it. */
  readonly passphrase?: string | URL | undefined;
  /** The CA bundle, PEM. */
  readonly ca?: string | URL | undefined;
}

/** The place of a part of the set in a snapshot. */
export interface TlsPlace {
  readonly path: string;
  /** Undefined if the file does not exist. */
  readonly file: FileSnapshot | undefined;
}

/** The parts of the set. An absent part is not needed. */
export interface TlsPlaces {
  readonly cert?: TlsPlace | undefined;
  readonly key?: TlsPlace | undefined;
  /** Whether certificate and key are in one PKCS#12 file. */
  readonly isPfx?: boolean;
  readonly passphrase?: TlsPlace | undefined;
  readonly ca?: TlsPlace | undefined;
}

/** What to watch, and where each part is in a snapshot. */
export interface TlsLayout {
  readonly target: string | readonly string[];
  locate(snapshot: Snapshot): TlsPlaces;
}

/** The keys of a Secret of type `kubernetes.io/tls`, with the CA that cert-manager adds. */
const SECRET = { cert: 'tls.crt', key: 'tls.key', ca: 'ca.crt' };

const PATHS = ['cert', 'key', 'bundle', 'pfx', 'passphrase', 'ca'] as const;

/**
 * The layout of a mounted Secret, of a credential bundle, or of files at any paths.
 * @throws {TypeError} for anything else, and for a certificate without a key or a key without a certificate.
 */
export function tlsLayout(given: string | URL | TlsPaths): TlsLayout {
  if (typeof given === 'string' || given instanceof URL) {
    return onePath(told(insidePath(checkPath('TlsFiles', 'directory', given))));
  }
  if (typeof given !== 'object' || (given as unknown) === null) {
    const wanted = 'a directory or a credential bundle, { bundle, ca } or { cert, key, ca }';
    throw new TypeError(`TlsFiles: expected ${wanted}, got ${describe(given)}`);
  }
  const unknown = Object.keys(given).find((name) => !(PATHS as readonly string[]).includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`TlsFiles: unknown path "${unknown}"; known are ${PATHS.join(', ')}`);
  }
  return namedPaths(given);
}

function namedPaths(given: TlsPaths): TlsLayout {
  const names = PATHS.filter((name) => given[name] !== undefined);
  const isWhole = (given.cert === undefined) === (given.key === undefined);
  const identities = [given.cert ?? given.key, given.bundle, given.pfx].filter((path) => path !== undefined);
  const isUsable = identities.length === 1 || (identities.length === 0 && given.ca !== undefined);
  if (!isUsable || !isWhole || (given.passphrase !== undefined && identities.length === 0)) {
    const wanted = 'cert and key, or bundle, or pfx, each with or without passphrase and ca; or only ca';
    throw new TypeError(`TlsFiles: paths must name ${wanted}; got ${names.join(', ') || 'none'}`);
  }
  const paths = new Map(
    names.map((name) => [name, told(insidePath(checkPath('TlsFiles', name, given[name])))]),
  );
  const both = paths.get('bundle') ?? paths.get('pfx');
  const place = (path: string | undefined, { files }: Snapshot): TlsPlace | undefined =>
    path === undefined ? undefined : { path, file: files.get(path) };
  return {
    // A certificate and its key may be in one file.
    target: [...new Set(paths.values())],
    locate: (snapshot) => ({
      cert: place(paths.get('cert') ?? both, snapshot),
      key: place(paths.get('key') ?? both, snapshot),
      isPfx: paths.has('pfx'),
      passphrase: place(paths.get('passphrase'), snapshot),
      ca: place(paths.get('ca'), snapshot),
    }),
  };
}

/** A directory or a credential bundle, which is not known before it is read. */
function onePath(path: string): TlsLayout {
  return {
    target: path,
    locate: (snapshot) => {
      if (snapshot.kind === 'file' || (snapshot.kind === 'missing' && path.endsWith('.pem'))) {
        const bundle = { path, file: snapshot.kind === 'file' ? snapshot : undefined };
        return { cert: bundle, key: bundle };
      }
      const place = (name: string): TlsPlace => ({
        path: told(within(path, name)),
        file: snapshot.files.get(name),
      });
      const ca = place(SECRET.ca);
      return { cert: place(SECRET.cert), key: place(SECRET.key), ...(!isBlank(ca.file) && { ca }) };
    },
  };
}

/** cert-manager writes an empty `ca.crt` if the issuer has no CA; templates add a line break. */
function isBlank(file: FileSnapshot | undefined): boolean {
  return !file || FileSnapshot.bytesOf(file)?.toString('latin1').trim() === '';
}
