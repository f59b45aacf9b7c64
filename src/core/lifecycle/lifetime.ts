const NO_WORK: readonly Promise<unknown>[] = [];

/**
 * The lifetime of a component: one signal that aborts at its end, and the work in flight. Each is created on first use,
 * because most of a thousand watchers need neither.
 */
export class Lifetime {
  #controller: AbortController | undefined;
  #work: Set<Promise<unknown>> | undefined;
  /** Rejects the promises of `untilEnd`. */
  #leaving: Set<() => void> | undefined;
  #reason!: Error;
  ended = false;

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.ended) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  /** @throws the reason of the end, if the lifetime has ended. */
  throwIfEnded(): void {
    if (this.ended) throw this.#reason;
  }

  /** Tracks work that the end has to wait for. The caller handles its rejection. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#work ??= new Set();
    this.#work.add(work);
    const forget = (): void => {
      this.#work?.delete(work);
      if (this.#work?.size === 0) this.#work = undefined;
    };
    work.then(forget, forget);
    return work;
  }

  /** Settles with the work, or rejects as soon as the lifetime ends, because the work may hang. */
  untilEnd<T>(work: T | Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const leave = (): void => reject(this.#reason);
      if (this.ended) leave();
      else (this.#leaving ??= new Set()).add(leave);
      const forget = (): void => {
        this.#leaving?.delete(leave);
        if (this.#leaving?.size === 0) this.#leaving = undefined;
      };
      void Promise.resolve(work).then(resolve, reject).finally(forget);
    });
  }

  /** Ends the lifetime. Resolves when no tracked work is left, including work that begins meanwhile. Never rejects. */
  async end(reason: Error): Promise<void> {
    if (!this.ended) this.#reason = reason;
    this.ended = true;
    this.#controller?.abort(reason);
    for (const leave of this.#leaving ?? []) leave();
    // At least once, because work that the end itself begins is tracked after this call.
    do await Promise.allSettled(this.#work ?? NO_WORK);
    while (this.#work);
  }
}
