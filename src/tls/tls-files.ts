import { checkChain, parseCertificates, parseKey, validityOf, type Validity } from './certificates.js';
import { isCertificate, isPrivateKey, pemBlocks } from './pem.js';
import { TlsCredentials } from './tls-credentials.js';
import { TlsError } from './tls-error.js';
import { tlsLayout, type TlsLayout, type TlsPaths, type TlsPlace, type TlsPlaces } from './tls-paths.js';
import {
  ALWAYS,
  CREDENTIALS_OPTIONS,
  MAX_BYTES,
  WatchedCredentials,
  WrongDate,
  type CredentialsEvents,
  type CredentialsOptions,
  type CredentialsStatus,
} from './watched-credentials.js';
import { describe, divideOptions, hasMethods } from '../core/options.js';
import type { Snapshot } from '../fs/snapshot.js';
import { VALUE_OPTION_NAMES } from '../watch/watched-value.js';

/** Options of `TlsFiles`. All are optional, and `undefined` means the default. */
export interface TlsFilesOptions extends CredentialsOptions {
  /** The CA bundle (PEM) for the credential bundle in the first argument. Default: none. */
  readonly ca?: string | URL | undefined;
}

/** Events of `TlsFiles`. No event's string, JSON or `inspect` form contains a key. */
export type TlsFilesEvents = CredentialsEvents<TlsCredentials>;

/** The status of `TlsFiles`. Plain data without keys; times are epoch ms. */
export type TlsFilesStatus = CredentialsStatus;

/**
 * The certificate, key and CA bundle in a mounted Secret (`tls.crt`, `tls.key`, `ca.crt`), in a credential bundle (key
 * and chain in one file, as in a pod certificate) or at other paths, always current. Each set is checked as a whole
 * before it is used: the PEM parses, the key matches the certificate, the chain is in order, and it is valid now. A
 * bad set is `rejected`, and the last good one stays in use.
 *
 * | what is on disk         | `current`              | event                                            |
 * |-------------------------|------------------------|--------------------------------------------------|
 * | a good set              | that set               | `change`                                         |
 * | another order of CAs    | as before              | –                                                |
 * | a bad or incomplete set | as before              | `rejected`                                       |
 * | a set not yet valid     | as before, until valid | `rejected`; `change` when it becomes valid       |
 * | an expired set          | as before              | `rejected`; `change` if the clock is set back    |
 * | unchanged, expires soon | as before              | `expiring`, then `expired`: then `get()` rejects |
 *
 * ```ts
 * const files = new TlsFiles('/etc/tls');
 * files.on('rejected', ({ error }) => console.warn(error.message));
 * await serveTls(server, files);
 * ```
 */
export class TlsFiles extends WatchedCredentials<TlsCredentials, TlsFilesEvents, TlsFilesStatus> {
  readonly #layout: TlsLayout;
  #certificatePath = this.path;

  /**
   * Does no I/O.
   * @param files the directory of a mounted Secret; a credential bundle, or a directory with one and at most one CA
   * bundle; or paths. A relative path is resolved against the working directory now.
   * @throws {TypeError | RangeError} for a wrong path or option.
   */
  constructor(files: string | URL | TlsPaths, options?: TlsFilesOptions) {
    const { own, rest } = divideOptions('TlsFiles', options, CREDENTIALS_OPTIONS, [
      ...VALUE_OPTION_NAMES,
      'ca',
    ]);
    const { ca, ...watching } = rest;
    const layout = tlsLayout(files, ca);
    super({ kind: 'TlsFiles', path: layout.target, ...own, options: watching });
    this.#layout = layout;
  }

  status(): TlsFilesStatus {
    return this.credentialsStatus();
  }

  protected get certificatePath(): string {
    return this.#certificatePath;
  }

  protected parse(snapshot: Snapshot): TlsCredentials {
    const places = this.#layout.locate(snapshot);
    for (const place of [places.cert, places.key, places.ca]) if (place) bytesOf(place);
    const trust = this.#trustOf(places);
    const identity = identityOf(places);
    const credentials = new TlsCredentials({ ...identity, ...trust, revision: snapshot.revision });
    mustBeUsable(credentials, this.path);
    if (places.cert) {
      this.checkDates({ path: places.cert.path, ...identity });
      this.#certificatePath = places.cert.path;
    }
    return credentials;
  }

  #trustOf({ ca }: TlsPlaces): Pick<TlsCredentials, 'ca' | 'authorities'> {
    const bytes = ca && bytesOf(ca);
    // cert-manager writes an empty `ca.crt` if the issuer has no CA; templates add a line break.
    if (!bytes || (ca.mayBeEmpty && bytes.toString('latin1').trim() === ''))
      return { ca: undefined, authorities: [] };
    const authorities = parseCertificates(ca.path, bytes, 'ERR_TLS_CA');
    const expiresAt = Math.max(...authorities.map((authority) => validityOf([authority]).expiresAt));
    if (expiresAt <= this.clock.now()) {
      const message = `Every certificate in the CA bundle "${ca.path}" has expired`;
      throw new WrongDate('ERR_TLS_CA', message, { ...ALWAYS, expiresAt });
    }
    // OpenSSL receives only what was parsed here, so that nothing else is trusted.
    return { ca: Buffer.from(authorities.join('')), authorities };
  }
}

/** Checks the certificate chain and its key. */
export interface Identity extends Validity, Pick<TlsCredentials, 'certificate'> {
  readonly pair: { readonly cert: Buffer; readonly key: Buffer } | undefined;
}

/** @throws {TlsError} if the key does not match the certificate, or the chain is not in order. */
export function identityOf({ cert, key }: TlsPlaces): Identity {
  if (!cert || !key) return { pair: undefined, certificate: undefined, ...ALWAYS };
  const [certBytes, keyBytes] = [bytesOf(cert), bytesOf(key)];
  const isBundle = cert.path === key.path;
  if (isBundle && !pemBlocks(keyBytes.toString('latin1')).some(isPrivateKey)) {
    const message = `"${key.path}" is a file without a private key; TlsFiles takes a directory, a credential bundle, or { cert, key, ca }`;
    throw new TlsError('ERR_TLS_PEM', message);
  }
  const chain = parseCertificates(cert.path, certBytes, 'ERR_TLS_PEM');
  const [certificate, ...issuers] = chain;
  const privateKey = parseKey(key.path, keyBytes);
  // `setSecureContext()` accepts an RSA key with an EC certificate; then every handshake fails.
  if (!certificate?.checkPrivateKey(privateKey)) {
    if (issuers.some((issuer) => issuer.checkPrivateKey(privateKey))) {
      const message = `The chain in "${cert.path}" is not in order: the certificate of the key must come first`;
      throw new TlsError('ERR_TLS_CHAIN', message);
    }
    const message = isBundle
      ? `The private key in "${key.path}" is not that of the first certificate in it`
      : `"${key.path}" is not the key of "${cert.path}"`;
    throw new TlsError('ERR_TLS_MISMATCH', message);
  }
  checkChain(cert.path, chain);
  const pair = { cert: only(certBytes, isCertificate), key: only(keyBytes, isPrivateKey) };
  return { pair, certificate, ...validityOf([certificate, ...issuers]) };
}

/** The blocks of one kind, so that the key is not passed on with the chain. */
function only(bytes: Buffer, accept: typeof isCertificate): Buffer {
  const blocks = pemBlocks(bytes.toString('latin1')).filter(accept);
  return Buffer.from(blocks.map(({ text }) => `${text}\n`).join(''), 'latin1');
}

/** @throws {TlsError} `ERR_TLS_MISSING`, `ERR_TLS_PEM`. */
export function bytesOf({ path, file }: TlsPlace): Buffer {
  if (!file) throw new TlsError('ERR_TLS_MISSING', `There is no file "${path}"`);
  if (file.content) return file.content;
  const message = `"${path}" has ${file.size} bytes; certificates and keys have at most ${MAX_BYTES}`;
  throw new TlsError('ERR_TLS_PEM', message);
}

/** @throws {TlsError} `ERR_TLS_REFUSED`. */
export function mustBeUsable(credentials: TlsCredentials, path: string): void {
  try {
    // This getter makes OpenSSL create the context.
    credentials.secureContext.context satisfies unknown;
  } catch (cause) {
    throw new TlsError('ERR_TLS_REFUSED', `OpenSSL rejects ${path}: ${(cause as Error).message}`, { cause });
  }
}

/** @throws {TypeError} when the value is not a `TlsFiles`, of whatever copy of this package. */
export function checkTlsFiles(owner: string, name: string, files: unknown): asserts files is TlsFiles {
  if (hasMethods(files, ['get', 'on', 'off'])) return;
  throw new TypeError(`${owner}: ${name} must be a TlsFiles, got ${describe(files)}`);
}
