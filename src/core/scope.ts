import { onAbort } from './abort.js';

/** The time between the start and the end of a component: one signal, and the work in flight. */
export class Scope {
  readonly #controller = new AbortController();
  readonly #work = new Set<Promise<unknown>>();
  /** The same as `signal.aborted`, which takes as long as a system call. */
  #ended = false;

  /** Aborts when the scope ends. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Tracks work that the end has to wait for. The caller handles its rejection. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#work.add(work);
    const forget = (): void => void this.#work.delete(work);
    work.then(forget, forget);
    return work;
  }

  /** The result of the work; rejects as soon as the scope ends, since the work may hang. */
  untilEnd<T>(work: T | Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const forget = onAbort(this.signal, () => reject(this.signal.reason as Error));
      void Promise.resolve(work).then(resolve, reject).finally(forget);
    });
  }

  /** Ends the scope and resolves when no tracked work is left, including work that the end itself begins. Never rejects. */
  async end(reason: unknown): Promise<void> {
    this.#ended = true;
    this.#controller.abort(reason);
    do await Promise.allSettled(this.#work);
    while (this.#work.size > 0);
  }
}
