import type { Hint, HintSink } from '../core/watch-backend.js';

/** Receives the hints. */
interface HintOwner {
  /** @param source the name of the backend. */
  hint(source: string, hint?: Hint): void;
}

/** Learns that a subscription no longer works. */
interface SinkListener {
  down(sink: BackendSink, error: unknown): void;
}

/** What one subscription of a backend reports to. */
export class BackendSink implements HintSink {
  readonly #source: string;
  readonly #owner: HintOwner;
  readonly #listener: SinkListener;
  #failure: { readonly error: unknown } | undefined;

  /** @param source the name of the backend. */
  constructor(source: string, owner: HintOwner, listener: SinkListener) {
    this.#source = source;
    this.#owner = owner;
    this.#listener = listener;
  }

  hint(hint?: Hint): void {
    this.#owner.hint(this.#source, hint);
  }

  down(error: unknown): void {
    this.#failure ??= { error };
    this.#listener.down(this, error);
  }

  /** @throws the error of the subscription if it no longer works. */
  throwIfDown(): void {
    if (this.#failure) throw this.#failure.error;
  }
}
