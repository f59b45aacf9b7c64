/** The lifetime of a component: one signal that aborts at its end, and the work in flight. */
export class Scope {
  /** Made when somebody asks for the signal: it takes as much memory as the rest of a lifecycle. */
  #controller: AbortController | undefined;
  readonly #work = new Set<Promise<unknown>>();
  /** Called at the end. */
  #leaving: readonly (() => void)[] = [];
  #ended = false;
  /** Set at the end. */
  #reason!: Error;

  /** Aborts when the scope ends. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#ended) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** @throws the reason of the end, if the scope has ended. */
  throwIfEnded(): void {
    if (this.#ended) throw this.#reason;
  }

  /** Tracks work that the end has to wait for. The caller handles its rejection. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work);
    const forget = (): void => void this.#work.delete(work);
    work.then(forget, forget);
    return work;
  }

  /** Settles with the work, or rejects as soon as the scope ends, since the work may hang. */
  untilEnd<T>(work: T | Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const leave = (): void => reject(this.#reason);
      if (this.#ended) leave();
      else this.#leaving = [...this.#leaving, leave];
      void Promise.resolve(work)
        .then(resolve, reject)
        .finally(() => (this.#leaving = this.#leaving.filter((each) => each !== leave)));
    });
  }

  /** Ends the scope. Resolves when no tracked work is left, including work that begins meanwhile. Never rejects. */
  async end(reason: Error): Promise<void> {
    if (!this.#ended) this.#reason = reason;
    this.#ended = true;
    this.#controller?.abort(reason);
    for (const leave of this.#leaving) leave();
    do await Promise.allSettled(this.#work);
    while (this.#work.size > 0);
  }
}
