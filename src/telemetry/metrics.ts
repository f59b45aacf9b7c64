/** The metrics of the library, in the one table that Prometheus, OpenTelemetry and the tests of the alert rules use. */
import { followTelemetry, type Labels, type Metric } from '../core/telemetry/telemetry-definitions.js';

type Worse = NonNullable<Metric['of']>;

const counter = (unit: string, labels: readonly string[], help: string) =>
  ({ kind: 'counter', unit, labels, help }) as const;
const seconds = (labels: readonly string[], help: string) =>
  ({ kind: 'histogram', unit: 's', labels, help }) as const;
const gauge = (unit: string, labels: readonly string[], help: string, of: Worse = 'greatest') =>
  ({ kind: 'gauge', unit, of, labels, help }) as const;
/** A moment, as Unix time. */
const time = (labels: readonly string[], help: string, of: Worse = 'least') => gauge('s', labels, help, of);

/** The metrics, by the name for OpenTelemetry without the prefix `resilient_watcher.`. */
export const METRICS = {
  changes: counter('{change}', ['target', 'cause'], 'Changes reported by watchers.'),
  checks: counter('{check}', ['target', 'cause'], 'Checks of watched targets that have ended.'),
  restarts: counter('{restart}', ['target', 'error_type'], 'Attempts to restart a failed backend.'),
  'connections.ended': counter(
    '{connection}',
    ['target', 'by'],
    'Connections that were ended because a CA was removed or a certificate revoked.',
  ),
  errors: counter(
    '{error}',
    ['target', 'error_type'],
    'Failures: unreadable targets, and errors that do not recover by themselves.',
  ),
  status: gauge(
    '1',
    ['target', 'state'],
    'Whether a watcher is in this state (watching, recovering, degraded), and whether its target is missing or unreadable.',
  ),
  warning: gauge(
    '1',
    ['target', 'code'],
    'Whether a watcher warns about a problem that it cannot solve (subPath, limit).',
  ),
  'last_change.timestamp': time(['target'], 'When a watcher last reported a change, Unix time.', 'greatest'),
  'last_check.timestamp': time(['target'], 'When a watcher last completed a check, Unix time.'),
  'change.delay': seconds(
    ['target'],
    'Time from the timestamp of a change in the file system to its report.',
  ),
  native_watches: gauge('{watch}', ['backend'], 'Directories watched by a native backend.'),
  'config.reloads': counter(
    '{reload}',
    ['loader', 'result'],
    'Loads and reloads of a configuration (accepted, unchanged, rejected, error).',
  ),
  'config.info': gauge('1', ['loader', 'digest'], 'Identifies the configuration in use: 1 for its digest.'),
  'config.last_reload.successful': gauge(
    '1',
    ['loader'],
    'Whether the newest state of all sources is in use.',
    'least',
  ),
  'config.last_reload.success.timestamp': time(
    ['loader'],
    'When a load or reload was last successful, Unix time.',
  ),
  'token.expiration.timestamp': time(['target'], 'When the current token expires, Unix time.'),
  'token.next_refresh.timestamp': time(['target'], 'When the next token will be requested, Unix time.'),
  'token.clock_skew': gauge(
    's',
    ['target'],
    "How far the current token was dated ahead of this machine's clock when it was issued.",
  ),
  'token.requests': counter(
    '{request}',
    ['target', 'reason', 'result'],
    'Requests for a token (issued, unchanged, error).',
  ),
  'token.request.duration': seconds(['target'], 'Duration of requests for a token.'),
  'token.deliveries': counter(
    '{delivery}',
    ['target', 'sink', 'result'],
    'Deliveries of a token to a sink (delivered, error).',
  ),
  'certificate.crl.expiration.timestamp': time(
    ['target'],
    'When the first revocation list expires, Unix time.',
  ),
  'certificate.expiration.timestamp': time(['target'], 'When the current certificate expires, Unix time.'),
  'certificate.last_update.successful': gauge(
    '1',
    ['target'],
    'Whether the newest certificate, key and CA bundle are in use.',
    'least',
  ),
  'value.last_update.successful': gauge(
    '1',
    ['target'],
    'Whether the newest contents of a secret or token file are in use.',
    'least',
  ),
  'certificate.not_before.timestamp': time(
    ['target'],
    'When the current certificate became valid, Unix time.',
  ),
  writes: {
    ...counter('{write}', ['result'], 'Atomic writes of files and volumes (written, unchanged, error).'),
    initial: [{ result: 'written' }, { result: 'unchanged' }, { result: 'error' }],
  },
  'write.duration': seconds([], 'Duration of atomic writes.'),
} as const satisfies Readonly<Record<string, Metric>>;

/**
 * Calls back with each metric of the library and of the packages as soon as it is known. Returns a function that ends
 * it.
 */
export function followMetrics(follower: (name: string, metric: Metric) => void): () => void {
  return followTelemetry<Metric>(METRICS, ({ metrics }) => metrics, follower);
}

export function otelName(name: string): string {
  return `resilient_watcher.${name}`;
}

/** The name for Prometheus, into which OpenTelemetry translates its own name and the unit. */
export function prometheusName(name: string, { kind, unit }: Metric): string {
  const suffix = (unit === 's' ? '_seconds' : '') + (kind === 'counter' ? '_total' : '');
  return `${otelName(name).replaceAll('.', '_')}${suffix}`;
}

/** The label that names the component, if the metric has one. */
export function ownLabel({ labels }: Pick<Metric, 'labels'>, name: string): Labels {
  const own = labels.find((label) => label === 'loader' || label === 'target');
  return own ? { [own]: name } : {};
}

/**
 * Upper bounds of the histograms, seconds: from the sub-millisecond report of a native event, over the settle time and
 * the poll and resync intervals, to the minute within which an alert should fire.
 */
export const SECONDS_BUCKETS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;

/** A value of a gauge. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}
