import type {
  HintSink,
  WatchBackend,
  WatchedDirectory,
  WatchSubscription,
} from '../core/ports/watch-backend.js';

/**
 * A backend whose hints are sent by a test. It records the directories that it was asked to watch.
 *
 * ```ts
 * const backend = new ScriptedBackend();
 * const watcher = new ResilientWatcher(path, { backend, clock });
 * await watcher.start();
 * volume.publish({ 'app.yaml': 'b' });
 * backend.hint();
 * await watcher.idle();
 * ```
 */
export class ScriptedBackend implements WatchBackend {
  readonly name: string;
  readonly #live = new Map<WatchSubscription, HintSink>();
  /** The number of subscriptions so far. */
  subscribed = 0;
  /** The directories that were last set. */
  directories: readonly WatchedDirectory[] = [];
  #failures: unknown[] = [];

  constructor(name = 'scripted') {
    this.name = name;
  }

  /** The number of open subscriptions. */
  get subscriptions(): number {
    return this.#live.size;
  }

  /** Sends every subscriber a hint, about `path` (absolute) or about anything. */
  hint(path?: string): void {
    for (const sink of [...this.#live.values()]) sink.hint(path === undefined ? undefined : { path });
  }

  /** Ends every subscription, like a native watcher that fails. */
  fail(error: unknown = new Error('scripted failure')): void {
    for (const sink of [...this.#live.values()]) sink.down(error);
  }

  /** Makes the next subscriptions fail, one for each error. */
  refuse(...errors: unknown[]): void {
    this.#failures.push(...errors);
  }

  /** Lets subscriptions succeed again. */
  accept(): void {
    this.#failures = [];
  }

  subscribe(sink: HintSink): WatchSubscription {
    if (this.#failures.length > 0) throw this.#failures.shift();
    this.subscribed += 1;
    let known = new Set<string>();
    const subscription: WatchSubscription = {
      setDirectories: (directories) => {
        this.directories = directories;
        const keyOf = ({ identity, path }: WatchedDirectory): string => `${identity} ${path}`;
        const opened = directories.filter((directory) => !known.has(keyOf(directory)));
        known = new Set(directories.map(keyOf));
        return opened.map(({ path }) => path);
      },
      close: () => void this.#live.delete(subscription),
    };
    this.#live.set(subscription, sink);
    return subscription;
  }
}
