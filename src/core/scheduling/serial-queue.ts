/** Runs work for the same key in the order of the calls, one at a time. Work for different keys runs concurrently. */
export class SerialQueue {
  readonly #last = new Map<string, Promise<void>>();

  /** The number of keys with work in progress or waiting. */
  get size(): number {
    return this.#last.size;
  }

  /**
   * Runs `work` after all earlier work for this key has settled, and settles as it does. The first work begins at once;
   * work that it adds runs after it.
   */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    let end!: () => void;
    const turn = new Promise<void>((resolve) => (end = resolve));
    this.#last.set(key, turn);
    try {
      if (before) await before;
      return await work();
    } finally {
      // A key without work is removed.
      if (this.#last.get(key) === turn) this.#last.delete(key);
      end();
    }
  }
}
