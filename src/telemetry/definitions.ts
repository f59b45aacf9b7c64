/** What the log says about each event and operation of the library, and which metrics count it. */
import { isoTime } from '../core/ports/clock.js';
import {
  telemetryOf,
  type EventLine,
  type Meter,
  type OperationDefinition,
} from '../core/telemetry/telemetry-definitions.js';
import type {
  OperationMessages,
  OperationName,
  PointMessages,
} from '../core/telemetry/telemetry-messages.js';
import type { ErrorSummary, PointName } from '../core/telemetry/telemetry-points.js';
import type { Operation, Point } from './observe.js';

const countError = ({ error }: { readonly error: ErrorSummary }, meter: Meter): void =>
  meter.error(typeOf(error));

const EVENTS: { readonly [N in PointName]: EventLine<PointMessages[N]> } = {
  start: { level: 'routine', text: () => 'started' },
  close: { level: 'routine', text: () => 'closed' },
  change: {
    level: 'routine',
    text: (message) => `${outcomeOf(message)}${certificateIn(message)}${namesIn(message)}`,
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
    text: ({ error }) => `degraded to polling: ${textOf(error)}`,
    measure: countError,
  },
  recovered: { level: 'routine', text: () => 'native watching works again' },
  warning: { level: 'warn', text: ({ message }) => message },
  unreadable: { level: 'warn', text: ({ error }) => `unreadable: ${textOf(error)}`, measure: countError },
  readable: { level: 'routine', text: () => 'readable again' },
  rejected: {
    level: 'warn',
    text({ problems, error }) {
      const why = problems?.map(({ message }) => message).join('; ') ?? (error && textOf(error)) ?? '';
      return `update rejected: ${why}`;
    },
    measure: ({ problems, error }, meter) =>
      meter.count('errors', { error_type: problems?.[0]?.code ?? typeOf(error) }),
  },
  reverted: {
    level: 'warn',
    text: ({ error, sources }) => `${sources.join(', ')} reverted: ${textOf(error)}`,
    measure: countError,
  },
  expiring: {
    level: 'warn',
    text: (message) => `expires soon and has not been replaced${certificateIn(message)}`,
  },
  expired: { level: 'error', text: ({ error }) => `expired: ${textOf(error)}`, measure: countError },
  connectionsEnded: {
    level: 'warn',
    text: ({ by, connections }) => `a CA was removed; connections of ${by} that end: ${connections}`,
    measure: ({ by, connections }, meter) => meter.count('connections.ended', { by }, connections),
  },
  // A failure of an operation, which is counted by its result, or of `PodSync`, which is counted as `unhealthy`.
  retry: {
    level: 'warn',
    text: ({ error, delayMs }) => `${textOf(error)}; next attempt in ${Math.round(delayMs)} ms`,
    cause: ({ request, error }) => request && `${request} ${error.code}`,
  },
  unhealthy: { level: 'warn', text: ({ error }) => `unhealthy: ${textOf(error)}`, measure: countError },
  healthy: { level: 'routine', text: () => 'healthy' },
  error: { level: 'error', text: ({ error }) => textOf(error), measure: countError },
};

/**
 * Checks and writes are too frequent for a log, so they have no title. A reload is logged as its change or rejection, and a
 * request that failed as its `retry` or `error`.
 */
const OPERATIONS: { readonly [N in OperationName]: OperationDefinition<OperationMessages[N]> } = {
  check: { measure: ({ cause }, meter) => meter.count('checks', { cause }) },
  'token.request': {
    title: 'token request',
    measure({ reason, result }, meter, seconds) {
      meter.count('token.requests', { reason, result });
      meter.record('token.request.duration', seconds);
    },
  },
  'token.delivery': {
    title: 'token delivery',
    measure: ({ sink, result }, meter) => meter.count('token.deliveries', { sink, result }),
  },
  'config.reload': { measure: ({ result }, meter) => meter.count('config.reloads', { result }) },
  write: {
    measure({ result }, meter, seconds) {
      meter.count('writes', { result });
      meter.record('write.duration', seconds);
    },
  },
  publish: {
    title: 'publication',
    measure: ({ result }, meter) => meter.count('publishes', { result }),
  },
};

/** The definition of an operation of the library or of a package. */
export function operationOf({ name, message }: Operation): OperationDefinition | undefined {
  if (Object.hasOwn(OPERATIONS, name)) return OPERATIONS[name];
  return message.component && telemetryOf(message.component.kind)?.operations?.[name];
}

/** The definition of an event of the library or of a package. */
export function eventOf({ name, message }: Point): EventLine | undefined {
  return Object.hasOwn(EVENTS, name) ? EVENTS[name] : telemetryOf(message.component.kind)?.events?.[name];
}

/** The level and the text of an event, and the cause of which it is one of many. */
export function lineOf(point: Point): {
  readonly level: EventLine['level'];
  readonly text: string;
  readonly cause: string | undefined;
} {
  const event = eventOf(point);
  const { name, message } = point;
  return {
    level: event?.level ?? 'routine',
    text: event?.text(message) ?? name,
    cause: event?.cause?.(message),
  };
}

/** The `error.type` of OpenTelemetry, which should have few values. */
export function typeOf(error: ErrorSummary | undefined): string {
  return error?.code ?? error?.name ?? 'Error';
}

export function textOf({ message, code, name }: ErrorSummary): string {
  return message === '' ? (code ?? name) : message;
}

/** How many names of what has changed a line has. */
const NAMES_IN_LINE = 5;

/** The first state of a watcher is found, and has names without signs. */
const isFirst = ({ cause }: PointMessages['change']): boolean => cause === 'start';

function outcomeOf(message: PointMessages['change']): string {
  if (message.kind === 'missing') return 'missing';
  if (!isFirst(message)) return 'changed';
  return message.added?.length === 0 ? 'empty' : 'found';
}

function namesIn(message: PointMessages['change']): string {
  const { added = [], changed = [], removed = [], paths = [] } = message;
  const names = [
    ...added.map((key) => (isFirst(message) ? key : `+${key}`)),
    ...changed,
    ...removed.map((key) => `-${key}`),
    ...paths.map((path) => path.join('.')),
  ];
  if (names.length === 0) return '';
  const more = names.length - NAMES_IN_LINE;
  return `: ${names.slice(0, NAMES_IN_LINE).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

function certificateIn({ subject, fingerprint256, expiresAt }: PointMessages['change']): string {
  if (expiresAt === undefined) return '';
  return `: ${subject}, SHA-256 ${fingerprint256}, expires at ${isoTime(expiresAt)}`;
}
