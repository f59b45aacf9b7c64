import type { HintSink, WatchBackend, WatchSubscription } from 'resilient-watcher';

/** A real backend that a test can make fail, or whose hints it can drop. */
export class FragileBackend implements WatchBackend {
  readonly name: string;
  /** No hint comes through. */
  deaf = false;
  readonly #inner: WatchBackend;
  readonly #sinks = new Set<HintSink>();

  constructor(inner: WatchBackend) {
    this.name = inner.name;
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
    for (const sink of [...this.#sinks]) sink.down(new Error('The test made the backend fail'));
  }
}
