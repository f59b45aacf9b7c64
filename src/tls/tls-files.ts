import { Alarm } from '../core/scheduling/alarm.js';
import { dateOrNull } from '../core/ports/clock.js';
import type { Expiry } from '../core/lifecycle/events.js';
import {
  callback,
  describe,
  divideOptions,
  hasMethods,
  milliseconds,
  optional,
} from '../core/options/options.js';
import {
  expiryVerdict,
  flag,
  seconds,
  type StatusDescription,
} from '../core/telemetry/status-description.js';
import type { ResilientError } from '../core/errors/resilient-error.js';
import type { Snapshot } from '../fs/snapshot.js';
import type { WatcherWarning } from '../watch/watcher-events.js';
import { GROUP_SETTLE_MS } from '../watch/watcher-options.js';
import {
  VALUE_OPTION_NAMES,
  WatchedValue,
  type WatchedValueEvents,
  type WatchedValueOptions,
  type WatchedValueStatus,
} from '../watch/watched-value.js';
import { subjectName } from './certificates.js';
import { HalfRenewal, isHalf } from './half-renewal.js';
import type { TlsCredentials } from './tls-credentials.js';
import { TlsError } from './tls-error.js';
import { parsePlaces, type TlsParser } from './tls-parser.js';
import {
  anyLayout,
  tlsLayout,
  type NamedPaths,
  type TlsPaths,
  type TlsPlace,
  type TlsPlaces,
} from './tls-paths.js';
import { expiredError, expiryWarning, MAX_BYTES, parseSet } from './tls-set.js';

/** Options of `TlsFiles`. All are optional, and `undefined` means the default. */
export interface TlsFilesOptions extends WatchedValueOptions {
  /**
   * How long before its expiry a certificate that has not been replaced is reported as `expiring`, ms. Default: a sixth
   * of its lifetime. cert-manager renews when a third is left, so half of that time has passed without a renewal.
   */
  readonly expiryWarningMs?: number | undefined;
  /**
   * Turns the files into PEM, if they are something else, such as a keystore in PKCS#12. What it returns is checked and
   * kept like any other set. If it throws, rejects, or has not ended after ten seconds, the set is `rejected`
   * (`ERR_TLS_PARSE`).
   */
  readonly parse?: TlsParser | undefined;
}

/** Events of `TlsFiles`. No event's string, JSON or `inspect` form contains a key. */
export interface TlsFilesEvents extends WatchedValueEvents<TlsCredentials> {
  /** The certificate expires soon and has not been replaced. Once for each certificate. */
  expiring: [expiry: { readonly current: TlsCredentials; readonly remainingMs: number }];
  /** The certificate has expired and has not been replaced; `get()` rejects. Once for each certificate. */
  expired: [expiry: Expiry<TlsCredentials> & { readonly error: TlsError }];
  /**
   * A CA was removed or a certificate revoked, and the connections that were made before end. Once for each server and
   * client.
   */
  connectionsEnded: [ended: EndedConnections];
}

/** Connections end because a CA was removed or a certificate revoked. */
export interface EndedConnections {
  /** The function that created the server or client, such as `serveTls`. */
  readonly by: string;
  /** How many connections end: at once, or when their requests in flight are answered. */
  readonly connections: number;
}

/** The status of `TlsFiles`. Plain data without keys; times are epoch ms. */
export interface TlsFilesStatus extends WatchedValueStatus {
  readonly subject: string | null;
  readonly fingerprint256: string | null;
  readonly notBefore: number | null;
  readonly expiresAt: number | null;
  readonly expired: boolean;
  /** When the first revocation list expires, epoch ms: from then on, OpenSSL refuses all certificates of that CA. */
  readonly crlExpiresAt: number | null;
  /** How many connections have ended because a CA was removed or a certificate revoked. */
  readonly endedConnections: number;
  /** What some peers reject about the current set. */
  readonly warnings: readonly WatcherWarning[];
}

/** How long a clock that was set back may go unnoticed, ms. */
const REVIEW_MS = 60_000;

const OWN_OPTIONS = {
  expiryWarningMs: optional(milliseconds(0)),
  parse: optional(callback<TlsParser>(() => ({}))),
};

/** Dates between which the same files have the same outcome, epoch ms. */
interface Period {
  readonly from: number;
  readonly until: number;
}

const ALWAYS: Period = { from: -Infinity, until: Infinity };

/** Ready: there is an unexpired certificate. */
export const tlsFilesDescription: StatusDescription<TlsFilesStatus> = {
  health: ({ available, expired }) => expiryVerdict(available, expired),
  *metrics({ available, rejected, expiresAt, notBefore, crlExpiresAt }) {
    yield* seconds('certificate.expiration.timestamp', expiresAt);
    yield* seconds('certificate.crl.expiration.timestamp', crlExpiresAt);
    yield* seconds('certificate.not_before.timestamp', notBefore);
    yield flag('certificate.last_update.successful', available && rejected === null);
  },
};

/**
 * The certificate, key and CA bundle in a mounted Secret (`tls.crt`, `tls.key`, `ca.crt`), in a credential bundle (key
 * and chain in one file, as in a pod certificate) or at other paths, there also with revocation lists, always current.
 * Each set is checked as a whole before it is used: the PEM parses, OpenSSL accepts it, the key matches the
 * certificate, and it is valid now. A bad set is `rejected`, and the last good one stays in use. What only some peers
 * reject is a `warning`.
 *
 * | what is on disk         | `current`              | event                                            |
 * |-------------------------|------------------------|--------------------------------------------------|
 * | a good set              | that set               | `change`                                         |
 * | an odd chain, see below | that set               | `change`, `warning`                              |
 * | another order of CAs    | as before              | –                                                |
 * | a bad or incomplete set | as before              | `rejected`                                       |
 * | half of a renewed pair  | as before              | `rejected` after `groupSettleMs`                 |
 * | a set not yet valid     | as before, until valid | `rejected`; `change` when valid                  |
 * | an expired set          | as before              | `rejected`; `change` if the clock is set back    |
 * | unchanged, expires soon | as before              | `expiring`, then `expired`: then `get()` rejects |
 *
 * A chain is odd if an issuer in it is not valid now or ends before the certificate, if it has issuers but not that of
 * the certificate, or if it is larger than OpenSSL clients accept. Revocation lists are used as they are; a `warning`
 * names each CA whose certificates OpenSSL refuses, because its list has expired or is missing. If every certificate of
 * the CA bundle has expired, the last bundle stays in use, if there is one, with a `warning`; a set of a CA bundle only
 * is rejected then.
 *
 * ```ts
 * const files = new TlsFiles('/etc/tls');
 * files.on('rejected', ({ error }) => console.warn(error.message));
 * await serveTls(server, files);
 * ```
 */
export class TlsFiles extends WatchedValue<TlsCredentials, TlsFilesEvents, TlsFilesStatus> {
  readonly #locate: (snapshot: Snapshot) => TlsPlaces;
  readonly #parser: TlsParser | undefined;
  readonly #expiryWarningMs: number | undefined;
  readonly #expiry: Alarm;
  readonly #again: Alarm;
  readonly #half: HalfRenewal;
  #certificatePath: string;
  /** What was last on disk, and what the parser has made of it. It is used again when its dates or the clock say so. */
  #last: Snapshot | undefined;
  #places: TlsPlaces | undefined;
  #period = ALWAYS;
  /** Whether it was refused: then it is not reported when it is refused again. */
  #isRefused = false;
  /** Of the current set, and of the one that was parsed last. */
  #warnings: readonly WatcherWarning[] = [];
  #found: readonly WatcherWarning[] = [];
  #reported: 'valid' | 'expiring' | 'expired' = 'valid';
  #endedConnections = 0;

  /**
   * Does no I/O.
   * @param files the directory of a mounted Secret, a credential bundle, or paths; with the option `parse`, any file or
   * directory, or any paths by name. A relative path is resolved against the working directory now.
   * @throws {TypeError | RangeError} for a wrong path or option.
   */
  constructor(files: string | URL | TlsPaths, options?: TlsFilesOptions);
  constructor(files: string | URL | NamedPaths, options: TlsFilesOptions & { readonly parse: TlsParser });
  constructor(files: string | URL | TlsPaths | NamedPaths, options?: TlsFilesOptions) {
    const { own, rest } = divideOptions('TlsFiles', options, OWN_OPTIONS, VALUE_OPTION_NAMES);
    const layout = own.parse ? anyLayout(files as NamedPaths) : tlsLayout(files);
    super({
      kind: 'TlsFiles',
      noun: 'usable certificate',
      path: layout.target,
      maxBytes: MAX_BYTES,
      options: rest,
      description: tlsFilesDescription,
    });
    this.#locate = layout.locate;
    this.#parser = own.parse;
    this.#certificatePath = this.path;
    this.#expiryWarningMs = own.expiryWarningMs;
    const onJump = (): void => void this.#expiry.bringForward(0);
    this.#expiry = new Alarm(this.clock, false, () => this.#watchExpiry(), onJump);
    this.#again = new Alarm(this.clock, false, () => this.#review());
    const waitMs = rest.groupSettleMs ?? GROUP_SETTLE_MS;
    this.#half = new HalfRenewal(this.clock, waitMs, (error) => super.refuse(error));
  }

  /**
   * Resolves to the current set; the first call starts watching.
   * @throws {TlsError} `ERR_TLS_UNAVAILABLE` if there has been no usable set, `ERR_TLS_EXPIRED` if its certificate
   * has expired; `cause` says why there is no newer one.
   * @throws {ClosedError} once closed.
   */
  override async get(): Promise<TlsCredentials> {
    const current = await super.get();
    if (current.expiresAt > this.clock.now()) return current;
    throw expiredError(this.#certificatePath, current, this.refusal);
  }

  status(): TlsFilesStatus {
    const { current } = this;
    return {
      ...this.baseStatus(),
      subject: current?.certificate ? subjectName(current.certificate) : null,
      fingerprint256: current?.fingerprint256 ?? null,
      notBefore: dateOrNull(current?.notBefore),
      expiresAt: dateOrNull(current?.expiresAt),
      expired: current !== undefined && current.expiresAt <= this.clock.now(),
      crlExpiresAt: dateOrNull(current?.revocation?.expiresAt),
      endedConnections: this.#endedConnections,
      warnings: this.#warnings,
    };
  }

  override async check(): Promise<void> {
    await super.check();
    this.#half.giveUp();
  }

  /** Counts and reports connections that a server or client of this set ends. @internal */
  reportEnded(by: string, connections: number): void {
    this.#endedConnections += connections;
    this.dispatch('connectionsEnded', { by, connections });
  }

  protected parse(snapshot: Snapshot): TlsCredentials | Promise<TlsCredentials> {
    if (snapshot !== this.#last) {
      this.#last = snapshot;
      this.#places = undefined;
      this.#isRefused = false;
    }
    this.#again.clear();
    this.#period = ALWAYS;
    if (this.#places) return this.#parseSet(snapshot, this.#places);
    const places = this.#locate(snapshot);
    return this.#parser ? this.#parseLater(this.#parser, snapshot, places) : this.#parseSet(snapshot, places);
  }

  async #parseLater(parser: TlsParser, snapshot: Snapshot, places: TlsPlaces): Promise<TlsCredentials> {
    const { path, clock, lifetime } = this;
    this.#places = await parsePlaces(parser, places, { path, clock, signal: lifetime.signal });
    return this.#parseSet(snapshot, this.#places);
  }

  #parseSet({ revision }: Snapshot, places: TlsPlaces): TlsCredentials {
    const { credentials, warnings, from, until, refusal } = parseSet(places, {
      now: this.clock.now(),
      path: this.path,
      revision,
      previous: this.current,
      expiryWarningMs: this.#expiryWarningMs,
    });
    this.#period = { from, until };
    this.#review();
    if (refusal) throw refusal;
    this.#half.settle();
    this.#isRefused = false;
    this.#certificatePath = places.cert?.path ?? this.path;
    this.#found = warnings.map((message) => ({ code: 'certificate', message }));
    return credentials;
  }

  protected secretsOf({ key }: TlsCredentials): readonly string[] {
    return key ? [key.toString('latin1')] : [];
  }

  protected unavailable(message: string, options: ErrorOptions): Error {
    return new TlsError('ERR_TLS_UNAVAILABLE', message, options);
  }

  /** Also warns of what is odd since then. */
  protected override use(credentials: TlsCredentials): void {
    const before = this.#warnings.map(({ message }) => message);
    this.#warnings = this.#found;
    super.use(credentials);
    for (const warning of this.#warnings) {
      if (!before.includes(warning.message) && !this.lifetime.ended) this.dispatch('warning', warning);
    }
  }

  protected override telemetryOf(event: string, payload: object | undefined): object | undefined {
    const certificate = this.current?.certificate;
    if (!certificate || (event !== 'change' && event !== 'expiring')) return payload;
    const { fingerprint256, expiresAt } = this.current;
    return { ...payload, subject: subjectName(certificate), fingerprint256, expiresAt };
  }

  protected override onReported(): void {
    this.#reported = 'valid';
    this.#watchExpiry();
  }

  protected override refuse(error: ResilientError): void {
    if (this.#isRefused) return;
    this.#isRefused = true;
    if (this.current && this.#last && isHalf(error, this.#partsOf(this.#last), this.#last)) {
      this.#half.wait(error);
    } else {
      this.#half.settle();
      super.refuse(error);
    }
  }

  protected override onClose(): Promise<void> {
    this.#expiry.clear();
    this.#again.clear();
    this.#half.settle();
    return super.onClose();
  }

  /** The files that have to match. */
  #partsOf(snapshot: Snapshot): readonly (TlsPlace | undefined)[] {
    const { cert, key, passphrase, ...others } = this.#locate(snapshot);
    return [cert, key, passphrase, ...(this.#parser ? Object.values(others) : [])] as TlsPlace[];
  }

  /** Looks at the same files again if a date in them has come, or the clock was set. */
  #review(): void {
    const { from, until } = this.#period;
    const now = this.clock.now();
    if (this.#last && (now < from || now >= until)) this.take(this.#last);
    else if (from > -Infinity || until < Infinity) this.#again.set(Math.min(until - now, REVIEW_MS));
  }

  /** Emits `expiring` or `expired` when due, and sets the alarm for the next one. */
  #watchExpiry(): void {
    const { current } = this;
    this.#expiry.clear();
    if (!current || !Number.isFinite(current.expiresAt) || this.#reported === 'expired') return;
    const { expiresAt } = current;
    const remainingMs = expiresAt - this.clock.now();
    const warningMs = expiryWarning(current, this.#expiryWarningMs);
    if (remainingMs <= 0) {
      this.#reported = 'expired';
      this.dispatch('expired', {
        current,
        error: expiredError(this.#certificatePath, current, this.refusal),
      });
    } else if (remainingMs > warningMs) {
      this.#expiry.set(remainingMs - warningMs);
    } else {
      this.#expiry.set(remainingMs);
      if (this.#reported === 'valid') this.dispatch('expiring', { current, remainingMs });
      this.#reported = 'expiring';
    }
  }
}

/** @throws {TypeError} when the value is not a `TlsFiles`, of whatever copy of this package. */
export function checkTlsFiles(owner: string, name: string, files: unknown): asserts files is TlsFiles {
  if (hasMethods(files, ['get', 'on', 'off'])) return;
  throw new TypeError(`${owner}: ${name} must be a TlsFiles, got ${describe(files)}`);
}

/** @throws {TlsError} `ERR_TLS_UNSUPPORTED` for revocation lists where nobody would use them. */
export function checkNoLists(owner: string, { crl }: TlsCredentials): void {
  if (!crl) return;
  const message = `${owner}: the revocation lists of these files would not be used; give it a TlsFiles without crl`;
  throw new TlsError('ERR_TLS_UNSUPPORTED', message);
}

/** Options of a client that would be used in place of the files, or after them. */
const INSTEAD_OF_FILES = {
  secureContext: 'the files would not be used',
  pfx: 'the CAs in it would be trusted beside those of the files; give cert and key instead',
  session: 'it would be resumed after a CA was removed',
};

/** @throws {TypeError} for an option of a client with which the files do not decide who is trusted. */
export function checkClientOptions(owner: string, given: object): void {
  const options = given as Readonly<Record<string, unknown>>;
  for (const [name, why] of Object.entries(INSTEAD_OF_FILES)) {
    if (options[name] !== undefined) throw new TypeError(`${owner}: "${name}" is not possible: ${why}`);
  }
}
