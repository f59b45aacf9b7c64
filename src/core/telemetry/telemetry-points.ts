/**
 * The events of the library, each in one place: the fields of its messages, what the log says about it, and which
 * metric counts it. From this table come the channels and the type `PointMessages`. What is not listed is not
 * published, so contents, tokens and secrets never reach a channel. A component of another package brings its own:
 * telemetry-definitions.ts.
 */
import { isoTime } from '../ports/clock.js';
import { telemetryOf, type EventDefinition, type EventLine, type Meter } from './telemetry-definitions.js';

/** An error as telemetry shows it. */
export interface ErrorSummary {
  readonly name: string;
  /** The error's stable code; null if it has none. */
  readonly code: string | null;
  /** Empty for errors of user code, which may quote anything. */
  readonly message: string;
}

/** One thing that is wrong with a configuration: names and places, never a value. */
export interface ProblemSummary {
  readonly code: string;
  /**
   * The name of the source: a path, `environment APP_*`, `values`, or `validate` when the value comes from no
   * source.
   */
  readonly source: string;
  /** The path of the value, from the top. */
  readonly path?: readonly string[] | undefined;
  /** The line in the text, from 1. */
  readonly line?: number | undefined;
  /** The column, from 1. */
  readonly column?: number | undefined;
  /** What is wrong in one line, with the source, line, column and path that are known; without values. */
  readonly message: string;
}

/** A field of every message of an event (`always`), or of some of them. Only its type matters. */
interface Field<T, Presence extends 'always' | 'sometimes'> {
  readonly presence: Presence;
  readonly type?: T;
}

type Fields = Readonly<Record<string, Field<unknown, 'always' | 'sometimes'>>>;

const always = <T>(): Field<T, 'always'> => ({ presence: 'always' });
const sometimes = <T>(): Field<T, 'sometimes'> => ({ presence: 'sometimes' });

type KeysOf<F, Presence> = {
  [K in keyof F]: F[K] extends { readonly presence: Presence } ? K : never;
}[keyof F];

type TypeOf<F> = F extends { readonly type?: infer T } ? T : never;

type MessageOf<F> = {
  readonly [K in KeysOf<F, 'always'>]: TypeOf<F[K]>;
} & { readonly [K in KeysOf<F, 'sometimes'>]?: TypeOf<F[K]> };

/** The fields decide the type of the message. */
const event = <F extends Fields>(
  fields: F,
  line: EventLine<MessageOf<F>>,
): EventDefinition<MessageOf<F>> => ({
  ...line,
  fields: Object.keys(fields),
});

/** A certificate, by what may be shown of it. */
const certificate = {
  subject: sometimes<string>(),
  /** SHA-256, as `AB:CD:…`. */
  fingerprint256: sometimes<string>(),
  /** Epoch ms. */
  expiresAt: sometimes<number>(),
};

const failure = { error: always<ErrorSummary>() };
type Failure = MessageOf<typeof failure>;

const change = {
  /** Watcher only: what triggered the check that first saw the difference. */
  cause: sometimes<string>(),
  /** Watcher only: the keys that differ. */
  added: sometimes<readonly string[]>(),
  changed: sometimes<readonly string[]>(),
  removed: sometimes<readonly string[]>(),
  /** Watcher only: the kind of what is there now, such as `volume` or `missing`. */
  kind: sometimes<string>(),
  /** Watcher of a volume only: what `..data` points to. */
  revision: sometimes<string>(),
  /** Configuration only: the paths of the values that differ. */
  paths: sometimes<readonly (readonly string[])[]>(),
  /**
   * Watcher only: the time since the change was made, by the file system's own timestamp, ms. Absent at the start, for
   * sets of files other than volumes, and on remote file systems.
   */
  delayMs: sometimes<number>(),
  ...certificate,
};

const countError = ({ error }: Failure, meter: Meter): void => meter.error(typeOf(error));

const routine = <F extends Fields>(text: string, fields: F): EventDefinition<MessageOf<F>> =>
  event(fields, { level: 'routine', text: () => text });

/** @param what the text before that of the error. */
const failing = <F extends Fields>(level: EventLine['level'], what: string, fields: F) => {
  const text = ({ error }: Failure): string => what + textOf(error);
  const all = { ...failure, ...fields };
  return event(all, { level, text, measure: countError } as EventLine<MessageOf<typeof all>>);
};

/** The point channels. The names are prefixed with `resilient-watcher:`. */
export const EVENTS = {
  /** The component is running. */
  start: routine('started', {}),
  /** The component was closed. */
  close: routine('closed', {}),
  /** The content differs from what was last reported. A certificate is the one that is in use now. */
  change: event(change, {
    level: 'routine',
    text: (message) => `${outcomeOf(message)}${certificateIn(message)}${namesIn(message)}`,
    measure({ cause, delayMs }, meter) {
      // Only a watcher knows the cause; the values that are read from its files change with it.
      if (cause !== undefined) meter.count('changes', { cause });
      if (cause !== undefined && delayMs !== undefined) meter.record('change.delay', delayMs / 1_000);
    },
  }),
  /** The backend failed; the next attempt to subscribe begins after `delayMs`. */
  restart: event(
    { attempt: always<number>(), delayMs: always<number>(), ...failure },
    {
      level: 'routine',
      text: ({ attempt }) => `subscribing again, attempt ${attempt}`,
      measure: ({ error }, meter) => meter.count('restarts', { error_type: typeOf(error) }),
    },
  ),
  /** Native watching is unavailable; the target is polled. */
  degraded: failing('warn', 'degraded to polling: ', { pollIntervalMs: sometimes<number>() }),
  /** Native watching works again. */
  recovered: routine('native watching works again', {
    backend: sometimes<string>(),
    degradedMs: sometimes<number>(),
  }),
  /** A problem that watching cannot solve, such as a `subPath` mount. */
  warning: event(
    { code: always<string>(), message: always<string>() },
    { level: 'warn', text: ({ message }) => message },
  ),
  /** The target cannot be read. */
  unreadable: failing('warn', 'unreadable: ', {}),
  /** The target can be read again. */
  readable: routine('readable again', { unreadableMs: sometimes<number>() }),
  /** An update is rejected; the last good contents stay in use. */
  rejected: event(
    {
      /** Configuration only: everything that is wrong, without values. */
      problems: sometimes<readonly ProblemSummary[]>(),
      error: sometimes<ErrorSummary>(),
    },
    {
      level: 'warn',
      text({ problems, error }) {
        const why = problems?.map(({ message }) => message).join('; ') ?? (error && textOf(error)) ?? '';
        return `update rejected: ${why}`;
      },
      measure: ({ problems, error }, meter) =>
        meter.count('errors', { error_type: problems?.[0]?.code ?? typeOf(error) }),
    },
  ),
  /** The newest contents are in use again, after `rejected`. */
  accepted: event(
    {
      rejectedMs: sometimes<number>(),
      /** Configuration only: the source whose contents were rejected. */
      source: sometimes<string>(),
    },
    {
      level: 'routine',
      text: ({ source }) => `${source === undefined ? '' : `${source} is `}accepted again`,
    },
  ),
  /** A configuration was not healthy in its trial; the one before is in use again. */
  reverted: event(
    { ...failure, sources: always<readonly string[]>() },
    {
      level: 'warn',
      text: ({ error, sources }) => `${sources.join(', ')} reverted: ${textOf(error)}`,
      measure: countError,
    },
  ),
  /** A certificate expires soon and has not been replaced. */
  expiring: event(
    { remainingMs: always<number>(), ...certificate },
    {
      level: 'warn',
      text: (message) => `expires soon and has not been replaced${certificateIn(message)}`,
    },
  ),
  /** A certificate or token has expired. */
  expired: failing('error', 'expired: ', {}),
  /** A CA was removed or a certificate revoked, and the connections of a server or client that were made before end. */
  connectionsEnded: event(
    {
      /** The function that created the server or client, such as `serveTls`. */
      by: always<string>(),
      connections: always<number>(),
    },
    {
      level: 'warn',
      text: ({ by, connections }) =>
        `a CA was removed or a certificate revoked; connections of ${by} that end: ${connections}`,
      measure: ({ by, connections }, meter) => meter.count('connections.ended', { by }, connections),
    },
  ),
  /**
   * A request failed; the next attempt follows after `delayMs`. A failure of an operation, which is counted by its
   * result, or of `PodSync`, which is counted as `unhealthy`.
   */
  retry: event(
    {
      /** What failed, such as `patch pods in shop`, of a component that makes several requests. */
      request: sometimes<string>(),
      delayMs: always<number>(),
      ...failure,
    },
    {
      level: 'warn',
      text: ({ error, delayMs }) => `${textOf(error)}; next attempt in ${Math.round(delayMs)} ms`,
      cause: ({ request, error }) => request && `${request} ${error.code}`,
    },
  ),
  /** Attempts failed repeatedly, or the token has expired. */
  unhealthy: failing('warn', 'unhealthy: ', { consecutiveFailures: sometimes<number>() }),
  /** An attempt succeeded again. */
  healthy: routine('healthy', {}),
  /** A failure that does not recover by itself. */
  error: failing('error', '', {}),
};

export type PointName = keyof typeof EVENTS;

/** The fields of an event's message. */
export type FieldsOf<N extends PointName> =
  (typeof EVENTS)[N] extends EventDefinition<infer Message> ? Message : never;

/** The definition of an event of the library, or of a package that has this kind of component. */
export function eventOf(kind: string, name: string): EventDefinition | undefined {
  return Object.hasOwn(EVENTS, name) ? EVENTS[name as PointName] : telemetryOf(kind)?.events?.[name];
}

/** The `error.type` of OpenTelemetry, which should have few values. */
export function typeOf(error: ErrorSummary | undefined): string {
  return error?.code ?? error?.name ?? 'Error';
}

export function textOf({ message, code, name }: ErrorSummary): string {
  return message === '' ? (code ?? name) : message;
}

type Change = MessageOf<typeof change>;

/** How many names of what has changed a line has. */
const NAMES_IN_LINE = 5;

/** The first state of a watcher is found, and has names without signs. */
const isFirst = ({ cause }: Change): boolean => cause === 'start';

function outcomeOf(message: Change): string {
  if (message.kind === 'missing') return 'missing';
  if (!isFirst(message)) return 'changed';
  return message.added?.length === 0 ? 'empty' : 'found';
}

function namesIn(message: Change): string {
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

function certificateIn({ subject, fingerprint256, expiresAt }: Change): string {
  if (expiresAt === undefined) return '';
  return `: ${subject}, SHA-256 ${fingerprint256}, expires at ${isoTime(expiresAt)}`;
}
