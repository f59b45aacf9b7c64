import { TlsError, type TlsErrorCode } from './tls-error.js';
import type { Expiry } from '../core/events.js';
import { describe, divideOptions, hasMethods, milliseconds, optional } from '../core/options.js';
import type { FileState, Snapshot } from '../fs/snapshot.js';
import { Alarm } from '../core/alarm.js';
import {
  VALUE_OPTION_NAMES,
  WatchedValue,
  type WatchedValueEvents,
  type WatchedValueOptions,
  type WatchedValueStatus,
} from '../watch/watched-value.js';
import { dateOrNull, isoTime } from '../core/clock.js';
import {
  checkChain,
  nameOf,
  parseCertificates,
  parseKey,
  validityOf,
  type Validity,
} from './certificates.js';
import { TlsCredentials } from './tls-credentials.js';
import { tlsLayout, type TlsLayout, type TlsPart, type TlsPaths } from './tls-paths.js';

/** Options of `TlsFiles`. All may be left out, and `undefined` means the default. */
export interface TlsFilesOptions extends WatchedValueOptions {
  /**
   * How long before it expires a certificate that has not been replaced is reported as `expiring`, ms. Default: a
   * sixth of its lifetime. cert-manager renews when a third is left, so half of that time has then passed without a
   * renewal.
   */
  readonly expiryWarningMs?: number | undefined;
}

/** Events of `TlsFiles`. No event's string, JSON or `inspect` form contains a key. */
export interface TlsFilesEvents extends WatchedValueEvents<TlsCredentials> {
  /** The certificate expires soon and has not been replaced. Once for each certificate. */
  expiring: [expiry: { readonly current: TlsCredentials; readonly remainingMs: number }];
  /** The certificate has expired and has not been replaced; `get()` rejects. Once for each certificate. */
  expired: [expiry: Expiry<TlsCredentials> & { readonly error: TlsError }];
}

/** The status of `TlsFiles`. Plain data without keys; times are epoch ms. */
export interface TlsFilesStatus extends WatchedValueStatus {
  readonly subject: string | null;
  readonly fingerprint256: string | null;
  readonly notBefore: number | null;
  readonly expiresAt: number | null;
  readonly expired: boolean;
}

/** Larger than any chain and bundle: the bundle of all public authorities has 0.3 MB. */
const MAX_BYTES = 1_048_576;

const OPTIONS = { expiryWarningMs: optional(milliseconds(0)) };

/**
 * The certificate, key and CA bundle in a mounted Secret (`tls.crt`, `tls.key`, `ca.crt`) or at other paths, always
 * current. Each set is checked as a whole before it is used: the PEM parses, the key belongs to the certificate,
 * the chain is in order, and it is valid now. A bad set is `rejected`, and the last good one stays.
 *
 * | what is on disk         | `current`                | event                                            |
 * |-------------------------|--------------------------|--------------------------------------------------|
 * | a good set              | that set                 | `change`                                         |
 * | a bad or incomplete set | as before                | `rejected`                                       |
 * | a set not yet valid     | as before, until it is   | `rejected`; `change` when it becomes valid       |
 * | an expired set          | as before                | `rejected`; `change` if the clock is set back    |
 * | unchanged, expires soon | as before                | `expiring`, then `expired`: then `get()` rejects |
 *
 * ```ts
 * const files = new TlsFiles('/etc/tls');
 * files.on('rejected', ({ error }) => console.warn(error.message));
 * await serveTls(server, files);
 * ```
 */
export class TlsFiles extends WatchedValue<TlsCredentials, TlsFilesEvents, TlsFilesStatus> {
  readonly #layout: TlsLayout;
  readonly #expiryWarningMs: number | undefined;
  readonly #expiry: Alarm;
  readonly #validity: Alarm;
  /** A set that is refused only because of the date. */
  #pending: { readonly snapshot: Snapshot; readonly validity: Validity } | undefined;
  #reported: 'valid' | 'expiring' | 'expired' = 'valid';

  /**
   * Does no I/O.
   * @param files the directory of a mounted Secret, or paths. A relative path is resolved against the working
   * directory now.
   * @throws {TypeError | RangeError} for a wrong path or option.
   */
  constructor(files: string | URL | TlsPaths, options?: TlsFilesOptions) {
    const layout = tlsLayout(files);
    const { own, rest } = divideOptions('TlsFiles', options, OPTIONS, VALUE_OPTION_NAMES);
    super({ kind: 'TlsFiles', path: layout.target, maxBytes: MAX_BYTES, options: rest });
    this.#layout = layout;
    this.#expiryWarningMs = own.expiryWarningMs;
    const onJump = (): void => void this.#expiry.hasten(0);
    this.#expiry = new Alarm(this.clock, false, () => this.#watchExpiry(), onJump);
    const retry = (): void => this.#retryPending();
    this.#validity = new Alarm(this.clock, false, retry, retry);
  }

  /**
   * Resolves to the current set; the first call starts watching.
   * @throws {TlsError} `ERR_TLS_UNAVAILABLE` if there has been no usable set, `ERR_TLS_EXPIRED` if its certificate
   * has expired; `cause` is the reason why there is no newer one.
   * @throws {ClosedError} once closed.
   */
  override async get(): Promise<TlsCredentials> {
    const current = await super.get();
    if (current.expiresAt > this.clock.now()) return current;
    throw this.#expired(current, this.refusal);
  }

  status(): TlsFilesStatus {
    const { current } = this;
    return {
      ...this.baseStatus(),
      subject: current?.certificate ? nameOf(current.certificate) : null,
      fingerprint256: current?.fingerprint256 ?? null,
      notBefore: dateOrNull(current?.notBefore),
      expiresAt: dateOrNull(current?.expiresAt),
      expired: current !== undefined && current.expiresAt <= this.clock.now(),
    };
  }

  protected parse(snapshot: Snapshot): TlsCredentials {
    if (snapshot.kind === 'file' && this.#layout.directory !== undefined) {
      const message = `"${this.path}" is a file; TlsFiles takes a directory, or { cert, key, ca }`;
      throw new TlsError('ERR_TLS_MISSING', message);
    }
    for (const part of this.#layout.required) this.#bytesOf(snapshot, part);
    const cert = this.#bytesOf(snapshot, 'cert');
    const key = this.#bytesOf(snapshot, 'key');
    const ca = this.#bundle(snapshot);
    const pair = cert && key ? { cert, key } : undefined;
    const checked = pair ? this.#checkPair(pair) : { certificate: undefined, ...ALWAYS };
    const credentials = new TlsCredentials({ pair, ...checked, ca, revision: snapshot.revision });
    try {
      // The getter makes OpenSSL create the context.
      credentials.secureContext.context satisfies unknown;
    } catch (cause) {
      const message = `OpenSSL refuses ${this.path}: ${(cause as Error).message}`;
      throw new TlsError('ERR_TLS_REFUSED', message, { cause });
    }
    this.#checkDates(credentials);
    return credentials;
  }

  protected isSame(a: TlsCredentials, b: TlsCredentials): boolean {
    return a.equals(b);
  }

  protected secretsOf({ key }: TlsCredentials): readonly string[] {
    return key ? [key.toString('latin1')] : [];
  }

  protected unavailable(cause: Error | undefined): Error {
    const reason = cause ? `: ${cause.message}` : '';
    const message = `There is no usable certificate in ${this.path} yet${reason}`;
    return new TlsError('ERR_TLS_UNAVAILABLE', message, { cause });
  }

  protected override take(snapshot: Snapshot): void {
    this.#pending = undefined;
    this.#validity.clear();
    super.take(snapshot);
  }

  protected override onReported(): void {
    this.#reported = 'valid';
    this.#watchExpiry();
  }

  protected override onRefused(error: Error, snapshot: Snapshot): void {
    if (!(error instanceof WrongDate)) return;
    this.#pending = { snapshot, validity: error.validity };
    this.#awaitValidity(error.validity);
  }

  protected override onClose(): Promise<void> {
    this.#expiry.clear();
    this.#validity.clear();
    return super.onClose();
  }

  /** The bytes of a part; undefined if it is optional and missing. */
  #bytesOf(snapshot: Snapshot, part: TlsPart): Buffer | undefined {
    const file: FileState | undefined = this.#layout.find(snapshot, part);
    const path = (which: TlsPart): string => this.#layout.pathOf(which);
    if (!file) {
      if (!this.#layout.required.includes(part)) return undefined;
      throw new TlsError('ERR_TLS_MISSING', `There is no file "${path(part)}"`);
    }
    if (file.content) return file.content;
    const message = `"${path(part)}" has ${file.size} bytes; certificates and keys have at most ${MAX_BYTES}`;
    throw new TlsError('ERR_TLS_TOO_LARGE', message);
  }

  #bundle(snapshot: Snapshot): Buffer | undefined {
    const ca = this.#bytesOf(snapshot, 'ca');
    const isRequired = this.#layout.required.includes('ca');
    // cert-manager writes an empty `ca.crt` if the issuer has no CA of its own; templates add a line break.
    if (!ca || (!isRequired && ca.toString('latin1').trim() === '')) return undefined;
    const path = this.#layout.pathOf('ca');
    const authorities = parseCertificates(path, ca, 'ERR_TLS_CA');
    const expiresAt = Math.max(...authorities.map((authority) => validityOf([authority]).expiresAt));
    if (expiresAt <= this.clock.now()) {
      const message = `Every certificate in the CA bundle "${path}" has expired`;
      throw new WrongDate('ERR_TLS_CA', message, { ...ALWAYS, expiresAt });
    }
    return ca;
  }

  #checkPair({ cert, key }: { readonly cert: Buffer; readonly key: Buffer }): Validity & {
    readonly certificate: TlsCredentials['certificate'];
  } {
    const pathOf = (part: TlsPart): string => this.#layout.pathOf(part);
    const chain = parseCertificates(pathOf('cert'), cert, 'ERR_TLS_CERTIFICATE');
    const [certificate, ...issuers] = chain;
    const privateKey = parseKey(pathOf('key'), key);
    // `setSecureContext()` lets an RSA key pass beside an EC certificate; then every handshake fails.
    if (!certificate?.checkPrivateKey(privateKey)) {
      if (issuers.some((issuer) => issuer.checkPrivateKey(privateKey))) {
        const message = `The chain in "${pathOf('cert')}" is not in order: the certificate of the key must come first`;
        throw new TlsError('ERR_TLS_CHAIN', message);
      }
      const message = `"${pathOf('key')}" is not the key of "${pathOf('cert')}"`;
      throw new TlsError('ERR_TLS_MISMATCH', message);
    }
    checkChain(pathOf('cert'), chain);
    return { certificate, ...validityOf([certificate, ...issuers]) };
  }

  #checkDates(credentials: TlsCredentials): void {
    const now = this.clock.now();
    const { notBefore, expiresAt } = credentials;
    if (expiresAt <= now) throw this.#expired(credentials);
    if (notBefore <= now) return;
    const message = `The certificate in "${this.#layout.pathOf('cert')}" is not valid before ${isoTime(notBefore)}`;
    throw new WrongDate('ERR_TLS_NOT_YET_VALID', message, { notBefore, expiresAt });
  }

  /** @param cause why there is no newer one */
  #expired({ notBefore, expiresAt }: Validity, cause?: Error): TlsError {
    const message = `The certificate in "${this.#layout.pathOf('cert')}" expired at ${isoTime(expiresAt)}`;
    return new WrongDate('ERR_TLS_EXPIRED', message, { notBefore, expiresAt }, cause && { cause });
  }

  /** Also called after each jump of the clock, which may have been wrong. */
  #retryPending(): void {
    if (!this.#pending) return;
    const { snapshot, validity } = this.#pending;
    const now = this.clock.now();
    if (validity.notBefore <= now && now < validity.expiresAt) this.take(snapshot);
    else this.#awaitValidity(validity);
  }

  #awaitValidity({ notBefore }: Validity): void {
    const remainingMs = notBefore - this.clock.now();
    // Only a jump of the clock makes an expired set valid.
    this.#validity.set(remainingMs > 0 ? remainingMs : Number.MAX_SAFE_INTEGER);
  }

  /** Emits `expiring` or `expired` if it is time, and sets the alarm for the next of them. */
  #watchExpiry(): void {
    const { current } = this;
    this.#expiry.clear();
    if (!current || !Number.isFinite(current.expiresAt) || this.#reported === 'expired') return;
    const { notBefore, expiresAt } = current;
    const remainingMs = expiresAt - this.clock.now();
    const warningMs = this.#expiryWarningMs ?? (expiresAt - notBefore) / 6;
    if (remainingMs <= 0) {
      this.#reported = 'expired';
      this.dispatch('expired', { current, error: this.#expired(current, this.refusal) });
    } else if (remainingMs > warningMs) {
      this.#expiry.set(remainingMs - warningMs);
    } else {
      this.#expiry.set(remainingMs);
      if (this.#reported === 'valid') this.dispatch('expiring', { current, remainingMs });
      this.#reported = 'expiring';
    }
  }
}

/** @throws {TypeError} when it is no `TlsFiles`, whichever copy of this package it is from. */
export function checkTlsFiles(owner: string, name: string, files: unknown): asserts files is TlsFiles {
  if (hasMethods(files, ['get', 'on', 'off'])) return;
  throw new TypeError(`${owner}: ${name} must be a TlsFiles, got ${describe(files)}`);
}

/** A CA bundle alone has no expiry date. */
const ALWAYS: Validity = { notBefore: -Infinity, expiresAt: Infinity };

/** The set is refused because of the date, and would be valid at another. */
class WrongDate extends TlsError {
  readonly #validity: Validity;

  constructor(code: TlsErrorCode, message: string, validity: Validity, options?: ErrorOptions) {
    super(code, message, options);
    this.#validity = validity;
  }

  get validity(): Validity {
    return this.#validity;
  }
}
