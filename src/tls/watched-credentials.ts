/** The base of credentials from watched files: handles sets that are not valid yet, and warns before sets expire. */
import { TlsError, type TlsErrorCode } from './tls-error.js';
import type { Expiry } from '../core/events.js';
import { milliseconds, optional } from '../core/options.js';
import type { Snapshot } from '../fs/snapshot.js';
import { Alarm } from '../core/alarm.js';
import {
  WatchedValue,
  type WatchedValueEvents,
  type WatchedValueOptions,
  type WatchedValueStatus,
} from '../watch/watched-value.js';
import { dateOrNull, isoTime } from '../core/clock.js';
import { nameOf, type Validity } from './certificates.js';
import type { TlsCredentials } from './tls-credentials.js';

/** Common options of credentials from watched files. */
export interface CredentialsOptions extends WatchedValueOptions {
  /**
   * How long before its expiry a certificate that has not been replaced is reported as `expiring`, ms. Default: a sixth
   * of its lifetime. cert-manager renews when a third is left, so half of that time has passed without a renewal.
   */
  readonly expiryWarningMs?: number | undefined;
}

/** Common events of credentials from watched files. No event's string, JSON or `inspect` form contains a key. */
export interface CredentialsEvents<T> extends WatchedValueEvents<T> {
  /** The certificate expires soon and has not been replaced. Once for each certificate. */
  expiring: [expiry: { readonly current: T; readonly remainingMs: number }];
  /** The certificate has expired and has not been replaced; `get()` rejects. Once for each certificate. */
  expired: [expiry: Expiry<T> & { readonly error: TlsError }];
}

/** Common status of credentials from watched files. Plain data without keys; times are epoch ms. */
export interface CredentialsStatus extends WatchedValueStatus {
  readonly subject: string | null;
  readonly fingerprint256: string | null;
  readonly notBefore: number | null;
  readonly expiresAt: number | null;
  readonly expired: boolean;
}

/** Larger than any chain and bundle: the bundle of all public authorities has 0.3 MB. */
export const MAX_BYTES = 1_048_576;

/** The names and checks of `CredentialsOptions` beyond those of every watched value. */
export const CREDENTIALS_OPTIONS = { expiryWarningMs: optional(milliseconds(0)) };

interface CredentialsSettings {
  /** The name of the class, the default of `name`. */
  readonly kind: string;
  readonly path: string | readonly string[];
  readonly expiryWarningMs: number | undefined;
  readonly options: WatchedValueOptions;
}

/** A subclass defines how the files are parsed. */
export abstract class WatchedCredentials<
  T extends TlsCredentials,
  Events extends CredentialsEvents<T>,
  Status extends CredentialsStatus,
> extends WatchedValue<T, Events, Status> {
  readonly #expiryWarningMs: number | undefined;
  readonly #expiry: Alarm;
  readonly #validity: Alarm;
  /** A set that was refused only because of its dates. */
  #pending: { readonly snapshot: Snapshot; readonly validity: Validity } | undefined;
  #reported: 'valid' | 'expiring' | 'expired' = 'valid';

  protected constructor({ kind, path, expiryWarningMs, options }: CredentialsSettings) {
    super({ kind, noun: 'usable certificate', path, maxBytes: MAX_BYTES, options });
    this.#expiryWarningMs = expiryWarningMs;
    const onJump = (): void => void this.#expiry.hasten(0);
    this.#expiry = new Alarm(this.clock, false, () => this.#watchExpiry(), onJump);
    const retry = (): void => this.#retryPending();
    this.#validity = new Alarm(this.clock, false, retry, retry);
  }

  /**
   * Resolves to the current set; the first call starts watching.
   * @throws {TlsError} `ERR_TLS_UNAVAILABLE` if there has been no usable set, `ERR_TLS_EXPIRED` if its certificate
   * has expired; `cause` says why there is no newer one.
   * @throws {ClosedError} once closed.
   */
  override async get(): Promise<T> {
    const current = await super.get();
    if (current.expiresAt > this.clock.now()) return current;
    throw this.#expired(current, this.refusal);
  }

  protected credentialsStatus(): CredentialsStatus {
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

  protected secretsOf({ key }: T): readonly string[] {
    return key ? [key.toString('latin1')] : [];
  }

  protected unavailable(message: string, options: ErrorOptions): Error {
    return new TlsError('ERR_TLS_UNAVAILABLE', message, options);
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

  /** @throws {TlsError} `ERR_TLS_EXPIRED`, `ERR_TLS_NOT_YET_VALID`; the set is tried again on the right date. */
  protected checkDates({ path, notBefore, expiresAt }: Validity & { readonly path: string }): void {
    const now = this.clock.now();
    if (expiresAt <= now) throw this.#expired({ path, notBefore, expiresAt });
    if (notBefore <= now) return;
    const message = `The certificate in "${path}" is not valid before ${isoTime(notBefore)}`;
    throw new WrongDate('ERR_TLS_NOT_YET_VALID', message, { notBefore, expiresAt });
  }

  /** The path of the certificate, for messages. */
  protected abstract get certificatePath(): string;

  /** @param cause why there is no newer one */
  #expired(
    { path = this.certificatePath, notBefore, expiresAt }: Validity & { readonly path?: string },
    cause?: Error,
  ): TlsError {
    const message = `The certificate in "${path}" expired at ${isoTime(expiresAt)}`;
    return new WrongDate('ERR_TLS_EXPIRED', message, { notBefore, expiresAt }, cause && { cause });
  }

  /** Also called after each jump of the clock, because the clock may have been wrong before. */
  #retryPending(): void {
    if (!this.#pending) return;
    const { snapshot, validity } = this.#pending;
    const now = this.clock.now();
    if (validity.notBefore <= now && now < validity.expiresAt) this.take(snapshot);
    else this.#awaitValidity(validity);
  }

  #awaitValidity({ notBefore }: Validity): void {
    const remainingMs = notBefore - this.clock.now();
    // Only a jump of the clock can make an expired set valid.
    this.#validity.set(remainingMs > 0 ? remainingMs : Number.MAX_SAFE_INTEGER);
  }

  /** Emits `expiring` or `expired` when due, and sets the alarm for the next one. */
  #watchExpiry(): void {
    const { current } = this;
    this.#expiry.clear();
    if (!current || !Number.isFinite(current.expiresAt) || this.#reported === 'expired') return;
    const { notBefore, expiresAt } = current;
    const remainingMs = expiresAt - this.clock.now();
    const warningMs = this.#expiryWarningMs ?? (expiresAt - notBefore) / 6;
    if (remainingMs <= 0) {
      this.#reported = 'expired';
      this.#emit('expired', { current, error: this.#expired(current, this.refusal) });
    } else if (remainingMs > warningMs) {
      this.#expiry.set(remainingMs - warningMs);
    } else {
      this.#expiry.set(remainingMs);
      if (this.#reported === 'valid') this.#emit('expiring', { current, remainingMs });
      this.#reported = 'expiring';
    }
  }

  /** Emits an event that every subclass has. */
  #emit<E extends 'expiring' | 'expired'>(event: E, ...args: CredentialsEvents<T>[E]): void {
    (this.dispatch as (event: E, ...args: CredentialsEvents<T>[E]) => void).call(this, event, ...args);
  }
}

/** A CA bundle alone has no expiry date. */
export const ALWAYS: Validity = { notBefore: -Infinity, expiresAt: Infinity };

/** Whether the set is refused only because of its dates. */
export class WrongDate extends TlsError {
  readonly #validity: Validity;

  constructor(code: TlsErrorCode, message: string, validity: Validity, options?: ErrorOptions) {
    super(code, message, options);
    this.#validity = validity;
  }

  get validity(): Validity {
    return this.#validity;
  }
}
