import {
  nonEmptyString,
  checkPath,
  fileSystem,
  flag,
  isPath,
  isPlainObject,
  matching,
  milliseconds,
  number,
  optional,
  port,
  required,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options/options.js';
import type { Clock } from '../core/ports/clock.js';
import type { ReadingCalls } from '../fs/calls.js';
import type { Random } from '../core/ports/random.js';
import type { TokenClient } from '../core/ports/token-client.js';
import { READING_CALLS } from '../fs/calls.js';
import type { TokenSink } from './delivery.js';
import { everyInterval, tokenSchedules, type TokenSchedule, type TokenScheduleName } from './schedule.js';
import type { TokenFileOptions } from './token-file.js';

/** Options of `TokenRefresher`. All except `client` have defaults; `undefined` means the default. */
export interface TokenRefresherOptions {
  /** The name in its status and telemetry; default `TokenRefresher`. */
  readonly name?: string | undefined;
  /** Requests tokens from the API server. */
  readonly client: TokenClient;
  /**
   * The path of the projected token. When its content changes, perhaps because the signing key was rotated, a new
   * token is requested, and the client receives the projected token as `credential`. If the API server has no
   * TokenRequest API, the projected token itself is used. `false` turns all of this off. Default
   * `/var/run/secrets/kubernetes.io/serviceaccount/token`.
   */
  readonly tokenFile?: string | URL | false | undefined;
  /** The audiences of the token; default `[]`, the API server's own audience. */
  readonly audiences?: readonly string[] | undefined;
  /**
   * The requested lifetime, s: 600 to 4,294,967,296, the bounds of the API server, which may grant less.
   * Default 86,400, one day.
   */
  readonly expirationSeconds?: number | undefined;
  /** Where each new token is delivered; default none. */
  readonly sinks?: readonly TokenSink[] | undefined;
  /** When to request the next token; never later than `leewayMs` before the token expires. Default `quarter`. */
  readonly schedule?: TokenScheduleName | TokenSchedule | undefined;
  /** Instead of `schedule`: the maximum time between two tokens, ms, with up to 50% jitter. At least 5,000. */
  readonly refreshIntervalMs?: number | undefined;
  /** A token is replaced at least this long before it expires, ms; default 10,000, as in client-go. */
  readonly leewayMs?: number | undefined;
  /** The minimum time between the starts of two attempts, ms; default 1,000. */
  readonly minIntervalMs?: number | undefined;
  /**
   * The maximum random delay after a change of the file or a 401, ms. It spreads the requests of a fleet that learns
   * of a new signing key all at once. Default 5,000.
   */
  readonly wakeJitterMs?: number | undefined;
  /** The initial backoff, ms, doubled on each failure, with up to 50% jitter. Default 10,000. */
  readonly retryDelayMs?: number | undefined;
  /** The maximum backoff, ms; default 60,000. */
  readonly maxRetryDelayMs?: number | undefined;
  /** The timeout of an attempt, ms; default 10,000: an answer usually takes milliseconds. */
  readonly attemptTimeoutMs?: number | undefined;
  /**
   * The timeout of a sink, after which its signal aborts, ms; default 30,000: a sink may write to a slow disk or over
   * the network.
   */
  readonly sinkTimeoutMs?: number | undefined;
  /** The number of consecutive failures that make the refresher unhealthy; default 3, after some 20 to 70 s. */
  readonly unhealthyAfter?: number | undefined;
  /** Whether waiting keeps the process alive; default true with `sinks`, and false if it only hands out the token. */
  readonly persistent?: boolean | undefined;
  /** Closes the refresher when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** How `tokenFile` is watched, as in `TokenFile`. Not with `tokenFile: false`. */
  readonly tokenFileOptions?:
    Pick<TokenFileOptions, 'backend' | 'pollIntervalMs' | 'resyncIntervalMs'> | undefined;
  /** The clock. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** The file system. Default: `node:fs`. */
  readonly fs?: ReadingCalls | undefined;
  /** The source of jitter. Default: `Math.random`. */
  readonly random?: Random | undefined;
}

const POD_TOKEN_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/token';

const OPTIONS = {
  client: required(port<TokenClient | undefined>(undefined, 'requestToken')),
  name: nonEmptyString('TokenRefresher'),
  tokenFile: matching<string | URL | false>(
    POD_TOKEN_FILE,
    'a path or false',
    (value) => value === false || isPath(value),
  ),
  audiences: matching<readonly string[]>([], 'an array of non-empty strings', (value) =>
    isArrayOf(value, (entry) => typeof entry === 'string' && entry !== ''),
  ),
  expirationSeconds: number(86_400, { min: 600, max: 2 ** 32, unit: 'seconds' }),
  sinks: matching<readonly TokenSink[]>([], 'an array of functions, such as fileSink(path)', (value) =>
    isArrayOf(value, (entry) => typeof entry === 'function'),
  ),
  schedule: matching<TokenScheduleName | TokenSchedule>(
    'quarter',
    'one of "quarter", "kubelet", or a function',
    (value) => typeof value === 'function' || value === 'quarter' || value === 'kubelet',
  ),
  refreshIntervalMs: optional(milliseconds(5_000, { min: 5_000 })),
  leewayMs: milliseconds(10_000),
  minIntervalMs: milliseconds(1_000),
  wakeJitterMs: milliseconds(5_000),
  retryDelayMs: milliseconds(10_000, { min: 1, atMost: 'maxRetryDelayMs' }),
  maxRetryDelayMs: milliseconds(60_000, { min: 1 }),
  attemptTimeoutMs: milliseconds(10_000, { min: 1 }),
  sinkTimeoutMs: milliseconds(30_000, { min: 1 }),
  unhealthyAfter: number(3, { min: 1 }),
  persistent: optional(flag(true)),
  ...PORT_OPTIONS,
  tokenFileOptions: matching<TokenFileOptions>({}, 'an object', isPlainObject),
  fs: fileSystem(...READING_CALLS),
};

/** The options of a refresher, complete and checked. */
export type ResolvedRefresherOptions = ReturnType<typeof resolveRefresherOptions>;

/**
 * Fills in the defaults.
 * @throws {TypeError} for an unknown option, one of the wrong type, no client, or options that exclude each other.
 * @throws {RangeError} for a number out of range.
 */
// eslint-disable-next-line @typescript-eslint/explicit-module-boundary-types -- derived from the table above
export function resolveRefresherOptions(given: TokenRefresherOptions) {
  const options = resolveOptions('TokenRefresher', given, OPTIONS);
  if (given.schedule !== undefined && given.refreshIntervalMs !== undefined) {
    throw new TypeError('TokenRefresher: give "schedule" or "refreshIntervalMs", not both');
  }
  const { tokenFile, retryDelayMs, maxRetryDelayMs, random, sinks, persistent = sinks.length > 0 } = options;
  if (tokenFile === false && given.tokenFileOptions !== undefined) {
    throw new TypeError('TokenRefresher: option "tokenFileOptions" has no effect with "tokenFile: false"');
  }
  return {
    ...options,
    persistent,
    /** After failures of a request or a sink. */
    retryDelays: { firstDelayMs: retryDelayMs, maxDelayMs: maxRetryDelayMs, random },
    tokenFile: tokenFile === false ? tokenFile : checkPath('TokenRefresher', 'option "tokenFile"', tokenFile),
  };
}

export function scheduleOf({ schedule, refreshIntervalMs }: ResolvedRefresherOptions): TokenSchedule {
  if (refreshIntervalMs !== undefined) return everyInterval(refreshIntervalMs);
  return typeof schedule === 'function' ? schedule : tokenSchedules[schedule];
}

function isArrayOf(value: unknown, accept: (entry: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(accept);
}
