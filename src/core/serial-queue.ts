/** Runs work for the same key one after another, in the order of the calls. Work for different keys runs concurrently. */
export class SerialQueue {
  readonly #last = new Map<string, Promise<unknown>>();

  /** The number of keys with work that runs or waits. */
  get size(): number {
    return this.#last.size;
  }

  /** Runs `work` after all earlier work for this key has settled, and settles as it does. */
  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const turn = before ? before.then(work, work) : work();
    this.#last.set(key, turn);
    try {
      return await turn;
    } finally {
      // A key without work is removed.
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }
}
