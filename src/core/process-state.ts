/**
 * What stands for the process and not for an object: there is one of each, however many copies of the library are loaded
 * (two installs, a preload beside a bundle). It is kept on `globalThis`, by name and by the version of its shape. A worker
 * thread has a `globalThis` of its own, and so a state of its own, as it has its own event loop and its own default CAs:
 * nothing is ordered or limited across threads.
 *
 * What a row holds is used by every copy: plain data, and the methods that its type shows. If either changes, raise
 * `shape`. Copies with different shapes each keep their own state, and `apart` says what that means.
 */
interface Row {
  readonly shape: number;
  readonly apart: string;
}

export const ROWS = {
  /** All observers and components: those that run (health checks, metrics). */
  running: { shape: 1, apart: 'logs, metrics and health checks of one do not know what runs in the other' },
  /** All observers and components: the events, operations and metrics of each kind of component. */
  telemetry: { shape: 1, apart: 'logs and metrics of one lack what packages on the other describe' },
  /** All components: who listens to telemetry, and so whether a failure is heard. */
  observers: { shape: 1, apart: 'a failure may be silent, or be warned of although it is logged' },
  /** All instruments: the meter providers of OpenTelemetry that record the metrics. */
  meters: { shape: 1, apart: 'OpenTelemetry may count each event twice' },
  /** All watchers: the native watches of each `fs.watch`. */
  watches: { shape: 1, apart: 'each directory is watched twice' },
  /** All watchers: the thread of `@parcel/watcher`, its trees, and what it has leaked. */
  parcel: { shape: 1, apart: 'a tree that both watch with "parcel" may miss events' },
  /**
   * All looks and writes: the text of the mount table, and the calls that have not come back from a mount that may
   * hang.
   */
  mounts: { shape: 1, apart: 'a server that does not answer occupies more threads of the thread pool' },
  /** All looks: when the work of this turn of the event loop began. */
  turn: { shape: 1, apart: 'together they may keep the event loop busy for twice as long' },
  /** All writers: the writes to each path, and how many run on each mount. */
  writes: { shape: 2, apart: 'writes of both to one path have no order' },
  /** All sinks: the merges into each kubeconfig. */
  merges: { shape: 1, apart: 'merges of both into one kubeconfig may lose entries' },
  /** All loaders, providers and parsers: where the values that they pass on stand. */
  places: { shape: 1, apart: 'problems lack line and column if parser and loader are of different versions' },
  /** All clients without a `ca` of their own: the CAs that were added to the default list. */
  authorities: {
    shape: 1,
    apart: 'the CAs that one trusts by default are lost when the other sets the list',
  },
  /** All who serve a server: what it was given, which is not its own. */
  servers: { shape: 2, apart: 'clients of a removed CA may be admitted by a server that both have served' },
  /** All who serve a server: its connections, and the generations that they belong to. */
  connections: { shape: 1, apart: 'connections of a removed CA may stay at a server that both serve' },
} as const satisfies Readonly<Record<string, Row>>;

export type RowName = keyof typeof ROWS;

const STATE = Symbol.for('resilient-watcher.process-state');

/** The states by name, and by shape. This never changes. */
type States = Map<string, Map<number, unknown>>;

/** The mark of an error, on the prototype of its class; a copy recognizes the errors of another one by it. */
export const ERROR_MARK = Symbol.for('resilient-watcher.error');

/**
 * The row of this name. The returned function gives its state, which is created when a copy first asks for it.
 */
export function processState<State>(name: RowName, create: () => State): () => State {
  let state: State | undefined;
  return () => (state ??= take(name, create));
}

function take<State>(name: RowName, create: () => State): State {
  const { shape, apart }: Row = ROWS[name];
  const shared = globalThis as unknown as Record<symbol, States | undefined>;
  const states = (shared[STATE] ??= new Map() as States);
  const shapes = states.get(name) ?? new Map<number, unknown>();
  states.set(name, shapes);
  if (shapes.has(shape)) return shapes.get(shape) as State;
  if (shapes.size > 0) {
    process.emitWarning(
      `Two versions of resilient-watcher in this process do not share "${name}": ${apart}. Use one version (npm ls resilient-watcher)`,
    );
  }
  const state = create();
  shapes.set(shape, state);
  return state;
}
