import { onAbort } from './abort.js';

/** The lifetime of a component: one signal that aborts at its end, and the work in flight. */
export class Scope {
  readonly #controller = new AbortController();
  readonly #work = new Set<Promise<unknown>>();
  /** The same as `signal.aborted`, which is as slow as a system call. */
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

  /** Settles with the work, or rejects as soon as the scope ends, since the work may hang. */
  untilEnd<T>(work: T | Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const forget = onAbort(this.signal, () => reject(this.signal.reason as Error));
      void Promise.resolve(work).then(resolve, reject).finally(forget);
    });
  }

  /** Ends the scope. Resolves when no tracked work is left, including work that begins meanwhile. Never rejects. */
  async end(reason: unknown): Promise<void> {
    this.#ended = true;
    this.#controller.abort(reason);
    do await Promise.allSettled(this.#work);
    while (this.#work.size > 0);
  }
}
