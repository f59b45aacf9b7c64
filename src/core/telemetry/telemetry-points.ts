/**
 * The events of the library that are published, with the fields of their messages: from this table come the channels and
 * the type `PointMessages`. What is not listed is not published, so contents, tokens and secrets never reach a channel.
 * What the log says about an event and which metric counts it is in telemetry/definitions.ts. A component of another
 * package brings its own events, see telemetry-definitions.ts.
 */
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

const always = <T>(): Field<T, 'always'> => ({ presence: 'always' });
const sometimes = <T>(): Field<T, 'sometimes'> => ({ presence: 'sometimes' });

/** A certificate, by what may be shown of it. */
const certificate = {
  subject: sometimes<string>(),
  /** SHA-256, as `AB:CD:…`. */
  fingerprint256: sometimes<string>(),
  /** Epoch ms. */
  expiresAt: sometimes<number>(),
};

const failure = { error: always<ErrorSummary>() };

/** The point channels. The names are prefixed with `resilient-watcher:`. */
export const POINTS = {
  /** The component is running. */
  start: {},
  /** The component was closed. */
  close: {},
  /** The content differs from what was last reported. A certificate is the one that is in use now. */
  change: {
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
  },
  /** The backend failed; the next attempt to subscribe begins after `delayMs`. */
  restart: { attempt: always<number>(), delayMs: always<number>(), ...failure },
  /** Native watching is unavailable; the target is polled. */
  degraded: { ...failure, pollIntervalMs: sometimes<number>() },
  /** Native watching works again. */
  recovered: { backend: sometimes<string>(), degradedMs: sometimes<number>() },
  /** A problem that watching cannot solve, such as a `subPath` mount. */
  warning: { code: always<string>(), message: always<string>() },
  /** The target cannot be read. */
  unreadable: failure,
  /** The target can be read again. */
  readable: { unreadableMs: sometimes<number>() },
  /** An update is rejected; the last good contents stay in use. */
  rejected: {
    /** Configuration only: everything that is wrong, without values. */
    problems: sometimes<readonly ProblemSummary[]>(),
    error: sometimes<ErrorSummary>(),
  },
  /** A configuration was not healthy in its trial; the one before is in use again. */
  reverted: { ...failure, sources: always<readonly string[]>() },
  /** A certificate expires soon and has not been replaced. */
  expiring: { remainingMs: always<number>(), ...certificate },
  /** A certificate or token has expired. */
  expired: failure,
  /** A CA was removed, and the connections of a server or client that were made before end. */
  connectionsEnded: {
    /** The function that created the server or client, such as `serveTls`. */
    by: always<string>(),
    connections: always<number>(),
  },
  /** A request failed; the next attempt follows after `delayMs`. */
  retry: {
    /** What failed, such as `patch pods in shop`, of a component that makes several requests. */
    request: sometimes<string>(),
    delayMs: always<number>(),
    ...failure,
  },
  /** Attempts failed repeatedly, or the token has expired. */
  unhealthy: { ...failure, consecutiveFailures: sometimes<number>() },
  /** An attempt succeeded again. */
  healthy: {},
  /** A failure that does not recover by itself. */
  error: failure,
};

export type PointName = keyof typeof POINTS;

type KeysOf<Fields, Presence> = {
  [K in keyof Fields]: Fields[K] extends { readonly presence: Presence } ? K : never;
}[keyof Fields];

type TypeOf<F> = F extends { readonly type?: infer T } ? T : never;

/** The fields of an event's message. */
export type FieldsOf<N extends PointName, Fields = (typeof POINTS)[N]> = {
  readonly [K in KeysOf<Fields, 'always'>]: TypeOf<Fields[K]>;
} & { readonly [K in KeysOf<Fields, 'sometimes'>]?: TypeOf<Fields[K]> };

/** The published fields of an event's payload. */
export function fieldsOf(name: PointName): readonly string[] {
  return Object.keys(POINTS[name]);
}
