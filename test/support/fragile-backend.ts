import type { HintSink, WatchBackend, WatchSubscription } from 'resilient-watcher';

/** A real backend that is lost, or whose hints are, when a test says so. */
export class FragileBackend implements WatchBackend {
  readonly name: string;
  readonly reportsWrites: boolean;
  /** No hint comes through. */
  deaf = false;
  readonly #inner: WatchBackend;
  readonly #sinks = new Set<HintSink>();

  constructor(inner: WatchBackend) {
    this.name = inner.name;
    this.reportsWrites = inner.reportsWrites ?? false;
    this.#inner = inner;
  }

  async subscribe(sink: HintSink, options: { readonly persistent: boolean }): Promise<WatchSubscription> {
    const subscription = await this.#inner.subscribe(
      {
        hint: (hint) => {
          if (!this.deaf) sink.hint(hint);
        },
        down: (error) => sink.down(error),
      },
      options,
    );
    this.#sinks.add(sink);
    return {
      setDirectories: (directories) => subscription.setDirectories(directories),
      close: () => {
        this.#sinks.delete(sink);
        return subscription.close();
      },
    };
  }

  /** Ends every subscription. */
  die(): void {
    for (const sink of [...this.#sinks]) sink.down(new Error('It died, as the test told it to'));
  }
}
