/** Every metric, in the one table that Prometheus, OpenTelemetry and the tests of the alert rules use. */

/** A metric. Histograms are of durations in seconds; gauges are read when they are collected. */
interface Metric {
  readonly kind: 'counter' | 'histogram' | 'gauge';
  /** The name for OpenTelemetry. Its translation to Prometheus yields the name in this table. */
  readonly otel: string;
  /** UCUM unit, for OpenTelemetry; Prometheus has it in the name. */
  readonly unit: string;
  readonly labels: readonly string[];
  readonly help: string;
  /** Gauges only: which value is used when two components have the same labels (the worse one). */
  readonly of?: 'least' | 'greatest';
}

const counter = (otel: string, unit: string, labels: readonly string[], help: string) =>
  ({ kind: 'counter', otel, unit, labels, help }) as const;
const seconds = (otel: string, labels: readonly string[], help: string) =>
  ({ kind: 'histogram', otel, unit: 's', labels, help }) as const;
const gauge = (
  otel: string,
  unit: string,
  of: 'least' | 'greatest',
  labels: readonly string[],
  help: string,
) => ({ kind: 'gauge', otel, unit, of, labels, help }) as const;

/** By the Prometheus name without the prefix `resilient_watcher_`. */
export const METRICS = {
  changes_total: counter(
    'resilient_watcher.changes',
    '{change}',
    ['target', 'cause'],
    'Changes reported by watchers.',
  ),
  checks_total: counter(
    'resilient_watcher.checks',
    '{check}',
    ['target', 'cause'],
    'Checks of watched targets that have ended.',
  ),
  restarts_total: counter(
    'resilient_watcher.restarts',
    '{restart}',
    ['target', 'error_type'],
    'Attempts to subscribe to a lost backend again.',
  ),
  errors_total: counter(
    'resilient_watcher.errors',
    '{error}',
    ['target', 'error_type'],
    'Failures: unreadable targets, and errors that do not heal by themselves.',
  ),
  status: gauge(
    'resilient_watcher.status',
    '1',
    'greatest',
    ['target', 'state'],
    'Whether a watcher is in this state (watching, recovering, degraded), and whether its target is missing or unreadable.',
  ),
  warning: gauge(
    'resilient_watcher.warning',
    '1',
    'greatest',
    ['target', 'code'],
    'Whether a watcher warns of a problem that it cannot solve (subPath, limit).',
  ),
  last_change_timestamp_seconds: gauge(
    'resilient_watcher.last_change.timestamp',
    's',
    'greatest',
    ['target'],
    'When a watcher last reported a change, Unix time.',
  ),
  last_check_timestamp_seconds: gauge(
    'resilient_watcher.last_check.timestamp',
    's',
    'least',
    ['target'],
    'When a watcher last completed a check, Unix time.',
  ),
  change_delay_seconds: seconds(
    'resilient_watcher.change.delay',
    ['target'],
    'Time from the timestamp of a change in the file system to its report.',
  ),
  native_watches: gauge(
    'resilient_watcher.native_watches',
    '{watch}',
    'greatest',
    ['backend'],
    'Directories watched by a native backend.',
  ),
  config_reloads_total: counter(
    'resilient_watcher.config.reloads',
    '{reload}',
    ['loader', 'result'],
    'Loads and reloads of a configuration (accepted, unchanged, rejected, error).',
  ),
  config_last_reload_successful: gauge(
    'resilient_watcher.config.last_reload.successful',
    '1',
    'least',
    ['loader'],
    'Whether the newest state of all sources is in use.',
  ),
  config_last_reload_success_timestamp_seconds: gauge(
    'resilient_watcher.config.last_reload.success.timestamp',
    's',
    'least',
    ['loader'],
    'When a load or reload was last successful, Unix time.',
  ),
  token_expiration_timestamp_seconds: gauge(
    'resilient_watcher.token.expiration.timestamp',
    's',
    'least',
    ['target'],
    'When the current token expires, Unix time.',
  ),
  token_next_refresh_timestamp_seconds: gauge(
    'resilient_watcher.token.next_refresh.timestamp',
    's',
    'least',
    ['target'],
    'When the next token will be requested, Unix time.',
  ),
  token_clock_skew_seconds: gauge(
    'resilient_watcher.token.clock_skew',
    's',
    'greatest',
    ['target'],
    "How far the current token was dated ahead of this machine's clock when it was issued.",
  ),
  token_requests_total: counter(
    'resilient_watcher.token.requests',
    '{request}',
    ['target', 'reason', 'result'],
    'Requests for a token (issued, unchanged, error).',
  ),
  token_request_duration_seconds: seconds(
    'resilient_watcher.token.request.duration',
    ['target'],
    'Duration of requests for a token.',
  ),
  token_deliveries_total: counter(
    'resilient_watcher.token.deliveries',
    '{delivery}',
    ['target', 'sink', 'result'],
    'Deliveries of a token to a sink (delivered, error).',
  ),
  certificate_expiration_timestamp_seconds: gauge(
    'resilient_watcher.certificate.expiration.timestamp',
    's',
    'least',
    ['target'],
    'When the current certificate expires, Unix time.',
  ),
  writes_total: counter(
    'resilient_watcher.writes',
    '{write}',
    ['result'],
    'Atomic writes of files and volumes (written, unchanged, error).',
  ),
  write_duration_seconds: seconds('resilient_watcher.write.duration', [], 'Duration of atomic writes.'),
  publishes_total: counter(
    'resilient_watcher.publishes',
    '{publish}',
    ['result'],
    'Publications of CSI volumes (published, unchanged, skipped, kept, error).',
  ),
  actions_total: counter(
    'resilient_watcher.actions',
    '{action}',
    ['action', 'result'],
    'Runs of checks and actions of a ReloadAction (succeeded, interrupted, error).',
  ),
} as const satisfies Readonly<Record<string, Metric>>;

export type MetricName = keyof typeof METRICS;
type NamesOf<Kind extends string> = {
  [N in MetricName]: (typeof METRICS)[N]['kind'] extends Kind ? N : never;
}[MetricName];
export type CounterName = NamesOf<'counter'>;
export type HistogramName = NamesOf<'histogram'>;
export type GaugeName = NamesOf<'gauge'>;

/** The metrics of one kind. */
export function metricsOf<Kind extends 'counter' | 'histogram' | 'gauge'>(kind: Kind): NamesOf<Kind>[] {
  return (Object.keys(METRICS) as MetricName[]).filter(
    (name): name is NamesOf<Kind> => METRICS[name].kind === kind,
  );
}

/**
 * Upper bounds of the histograms, seconds: from the sub-millisecond report of a native event, over the settle time and
 * the poll and resync intervals, to the minute within which an alert should fire.
 */
export const SECONDS_BUCKETS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
] as const;

export type Labels = Readonly<Record<string, string>>;

/** A value of a gauge. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}
