/** What the log says about each event, and which metrics count it. */
import { isoTime } from '../core/clock.js';
import type { PointMessages } from '../core/telemetry-messages.js';
import type { ErrorSummary, PointName } from '../core/telemetry-points.js';
import type { CounterName, HistogramName, Labels } from './metrics.js';
import type { Point } from './observe.js';

/** Where an event is counted; the label of the component is added. */
export interface Meter {
  count(metric: CounterName, labels: Labels, by?: number): void;
  record(metric: HistogramName, seconds: number): void;
  /** A failure, unless the owner of the component reports it, too. */
  error(type: string): void;
}

interface PointEvent<Message> {
  /** `routine`: the level that the application chose for such events. */
  readonly level: 'routine' | 'warn' | 'error';
  /** The text after the name of the component. */
  readonly text: (message: Message) => string;
  /** What many events have in common that are one line a minute: a trouble of a namespace concerns each of its pods. */
  readonly cause?: (message: Message) => string | undefined;
  readonly measure?: (message: Message, meter: Meter) => void;
}

const countError = ({ error }: { readonly error: ErrorSummary }, meter: Meter): void =>
  meter.error(typeOf(error));

const EVENTS: { readonly [N in PointName]: PointEvent<PointMessages[N]> } = {
  start: { level: 'routine', text: () => 'started' },
  close: { level: 'routine', text: () => 'closed' },
  change: {
    level: 'routine',
    text: (message) => `changed${certificateIn(message)}${namesIn(message)}`,
    measure({ cause, delayMs }, meter) {
      // Only a watcher knows the cause; the values that are read from its files change with it.
      if (cause !== undefined) meter.count('changes', { cause });
      if (cause !== undefined && delayMs !== undefined) meter.record('change.delay', delayMs / 1_000);
    },
  },
  restart: {
    level: 'routine',
    text: ({ attempt }) => `subscribing again, attempt ${attempt}`,
    measure: ({ error }, meter) => meter.count('restarts', { error_type: typeOf(error) }),
  },
  degraded: {
    level: 'warn',
    text: ({ error }) => `degraded to polling: ${said(error)}`,
    measure: countError,
  },
  recovered: { level: 'routine', text: () => 'native watching works again' },
  warning: { level: 'warn', text: ({ message }) => message },
  unreadable: { level: 'warn', text: ({ error }) => `unreadable: ${said(error)}`, measure: countError },
  readable: { level: 'routine', text: () => 'readable again' },
  rejected: {
    level: 'warn',
    text({ problems, error }) {
      const why = problems?.map(({ message }) => message).join('; ') ?? (error && said(error)) ?? '';
      return `update rejected: ${why}`;
    },
    measure: ({ problems, error }, meter) =>
      meter.count('errors', { error_type: problems?.[0]?.code ?? typeOf(error) }),
  },
  reverted: {
    level: 'warn',
    text: ({ error, sources }) => `${sources.join(', ')} reverted: ${said(error)}`,
    measure: countError,
  },
  expiring: {
    level: 'warn',
    text: (message) => `expires soon and has not been replaced${certificateIn(message)}`,
  },
  expired: { level: 'error', text: ({ error }) => `expired: ${said(error)}`, measure: countError },
  connectionsEnded: {
    level: 'warn',
    text: ({ by, connections }) => `a CA was removed; connections of ${by} that end: ${connections}`,
    measure: ({ by, connections }, meter) => meter.count('connections.ended', { by }, connections),
  },
  synced: {
    level: 'routine',
    text: ({ namespace, pod, delayMs }) => `pod ${namespace}/${pod} patched after ${Math.round(delayMs)} ms`,
    measure: ({ delayMs }, meter) => meter.record('pod_sync', delayMs / 1_000),
  },
  behind: {
    level: 'warn',
    text: ({ namespace, pod, waitedMs }) =>
      `pod ${namespace}/${pod} not patched: it has waited for ${Math.round(waitedMs)} ms`,
    cause: ({ namespace }) => namespace,
    measure: (_, meter) => meter.count('pod_sync.behind', {}),
  },
  // A failure of an operation, which is counted by its result, or of `PodSync`, which is counted as `unhealthy`.
  retry: {
    level: 'warn',
    text: ({ error, delayMs }) => `${said(error)}; next attempt in ${Math.round(delayMs)} ms`,
    cause: ({ request, error }) => request && `${request} ${error.code}`,
  },
  unhealthy: { level: 'warn', text: ({ error }) => `unhealthy: ${said(error)}`, measure: countError },
  healthy: { level: 'routine', text: () => 'healthy' },
  error: { level: 'error', text: ({ error }) => said(error), measure: countError },
};

/** The level and the text of an event, and the cause of which it is one of many. */
export function lineOf({ name, message }: Point): {
  readonly level: PointEvent<never>['level'];
  readonly text: string;
  readonly cause: string | undefined;
} {
  const { level, text, cause } = EVENTS[name] as PointEvent<Point['message']>;
  return { level, text: text(message), cause: cause?.(message) };
}

/** Counts an event. */
export function measure({ name, message }: Point, meter: Meter): void {
  (EVENTS[name] as PointEvent<Point['message']>).measure?.(message, meter);
}

/** The `error.type` of OpenTelemetry, which should have few values. */
export function typeOf(error: ErrorSummary | undefined): string {
  return error?.code ?? error?.name ?? 'Error';
}

/** An error in words. */
export function said({ message, code, name }: ErrorSummary): string {
  return message === '' ? (code ?? name) : message;
}

/** How many names of what has changed a line has. */
const NAMES_IN_LINE = 5;

function namesIn({ added = [], changed = [], removed = [], paths = [] }: PointMessages['change']): string {
  const names = [...added, ...changed, ...removed, ...paths.map((path) => path.join('.'))];
  if (names.length === 0) return '';
  const more = names.length - NAMES_IN_LINE;
  return `: ${names.slice(0, NAMES_IN_LINE).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function certificateIn({ subject, fingerprint256, expiresAt }: PointMessages['change']): string {
  if (expiresAt === undefined) return '';
  return `: ${subject}, SHA-256 ${fingerprint256}, expires at ${isoTime(expiresAt)}`;
}
