import {
  componentName,
  checkPath,
  fileSystem,
  flag,
  isPath,
  matching,
  milliseconds,
  number,
  optional,
  port,
  PORT_OPTIONS,
  resolveOptions,
} from '../core/options.js';
import type { Clock } from '../core/clock.js';
import type { FileSystem } from '../core/file-system.js';
import type { Random } from '../core/random.js';
import type { TokenClient } from '../core/token-client.js';
import { READ_CALLS } from '../fs/targets/read-limits.js';
import type { TokenSink } from './delivery.js';
import { everyInterval, tokenSchedules, type TokenSchedule, type TokenScheduleName } from './schedule.js';
import { tokenWatcherFactory, type TokenWatcherFactory } from './token-watch.js';

/** Options of `TokenRefresher`. All but `client` have defaults; `undefined` means the default. */
export interface TokenRefresherOptions {
  /** The name in its status and telemetry; default `TokenRefresher`. */
  readonly name?: string | undefined;
  /** Requests tokens from the API server. */
  readonly client: TokenClient;
  /**
   * The path of the projected token. When its content changes, which may be due to a rotation of the signing key, a
   * new token is requested, and the client receives the projected one as `credential`. If the API server has no
   * TokenRequest API, the projected token itself is used. `false`: none of this. Default
   * `/var/run/secrets/kubernetes.io/serviceaccount/token`.
   */
  readonly tokenFile?: string | URL | false | undefined;
  /** The audiences of the token; default `[]`, the API server's own audience. */
  readonly audiences?: readonly string[] | undefined;
  /**
   * The requested lifetime, s: 600 to 4 294 967 296, the bounds of the API server, which may grant less.
   * Default 86 400, one day.
   */
  readonly expirationSeconds?: number | undefined;
  /** Where each new token is delivered; default none. */
  readonly sinks?: readonly TokenSink[] | undefined;
  /** When to request the next token; default `quarter`. Never later than `leewayMs` before the token expires. */
  readonly schedule?: TokenScheduleName | TokenSchedule | undefined;
  /** Instead of `schedule`: the maximum time between two tokens, ms, with up to 50 % jitter. At least 5 000. */
  readonly refreshIntervalMs?: number | undefined;
  /** A token is replaced at least this long before it expires, ms; default 10 000, as in client-go. */
  readonly leewayMs?: number | undefined;
  /** The minimum time between the starts of two attempts, ms; default 1 000. */
  readonly minIntervalMs?: number | undefined;
  /**
   * The maximum random delay after a change of the file or a 401, ms. It spreads the requests of a fleet that learns
   * of a new signing key all at once. Default 5 000.
   */
  readonly wakeJitterMs?: number | undefined;
  /** The initial backoff, ms, doubled on each failure, with up to 50 % jitter. Default 10 000. */
  readonly retryDelayMs?: number | undefined;
  /** The maximum backoff, ms; default 60 000. */
  readonly maxRetryDelayMs?: number | undefined;
  /** The timeout of an attempt, ms; default 10 000: an answer usually takes milliseconds. */
  readonly attemptTimeoutMs?: number | undefined;
  /**
   * The timeout of a sink, after which its signal aborts, ms; default 30 000: a sink may write to a slow disk or over
   * the network.
   */
  readonly sinkTimeoutMs?: number | undefined;
  /** The number of consecutive failures that make the refresher unhealthy; default 3, after some 20 to 70 s. */
  readonly unhealthyAfter?: number | undefined;
  /** Whether waiting keeps the process alive; default true. */
  readonly persistent?: boolean | undefined;
  /** Closes the refresher when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Creates the watcher of `tokenFile`; default a `ResilientWatcher`. Not with `tokenFile: false`. */
  readonly watcherFactory?: TokenWatcherFactory | undefined;
  /** The clock. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** The file system. Default: `node:fs`. */
  readonly fs?: FileSystem | undefined;
  /** The source of jitter. Default: `Math.random`. */
  readonly random?: Random | undefined;
}

/** The path of a pod's own token. */
const POD_TOKEN_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/** Stands for a missing client; never called. */
const NO_CLIENT: TokenClient = { requestToken: () => Promise.reject(new Error('no client')) };

const OPTIONS = {
  client: port<TokenClient>(NO_CLIENT, 'requestToken'),
  name: componentName('TokenRefresher'),
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
  retryDelayMs: milliseconds(10_000, { min: 1 }),
  maxRetryDelayMs: milliseconds(60_000, { min: 1 }),
  attemptTimeoutMs: milliseconds(10_000, { min: 1 }),
  sinkTimeoutMs: milliseconds(30_000, { min: 1 }),
  unhealthyAfter: number(3, { min: 1 }),
  persistent: flag(true),
  ...PORT_OPTIONS,
  watcherFactory: tokenWatcherFactory,
  fs: fileSystem(...READ_CALLS),
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
  if (options.client === NO_CLIENT) {
    throw new TypeError('TokenRefresher: option "client" must be an object with requestToken, got undefined');
  }
  if (given.schedule !== undefined && given.refreshIntervalMs !== undefined) {
    throw new TypeError('TokenRefresher: give "schedule" or "refreshIntervalMs", not both');
  }
  const { tokenFile } = options;
  if (tokenFile === false && given.watcherFactory !== undefined) {
    throw new TypeError('TokenRefresher: option "watcherFactory" has no effect with "tokenFile: false"');
  }
  return {
    ...options,
    tokenFile: tokenFile === false ? tokenFile : checkPath('TokenRefresher', 'option "tokenFile"', tokenFile),
  };
}

/** The schedule that the options specify. */
export function scheduleOf({ schedule, refreshIntervalMs }: ResolvedRefresherOptions): TokenSchedule {
  if (refreshIntervalMs !== undefined) return everyInterval(refreshIntervalMs);
  return typeof schedule === 'function' ? schedule : tokenSchedules[schedule];
}

function isArrayOf(value: unknown, accept: (entry: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(accept);
}
