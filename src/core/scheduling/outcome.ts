/** A promise that is settled from outside, once. An ignored rejection does not end the process. */
export class Outcome<T> {
  readonly promise: Promise<T>;
  resolve!: (value: T) => void;
  reject!: (error: Error) => void;

  constructor() {
    this.promise = new Promise<T>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    void markHandled(this.promise);
  }
}

/** Publishes the promise before the work starts, so that reentrant calls can join it. */
export function begin<T>(publish: (work: Promise<T>) => unknown, work: () => Promise<T>): Promise<T> {
  let follow!: (begun: Promise<T>) => void;
  const promise = new Promise<T>((resolve) => (follow = resolve));
  publish(promise);
  follow(work());
  return promise;
}

/** The outcome of the attempt in progress or, if there is none, of the next one. */
export class NextOutcome<T> {
  #awaited: Outcome<T> | undefined;

  get promise(): Promise<T> {
    this.#awaited ??= new Outcome();
    return this.#awaited.promise;
  }

  resolve(value: T): void {
    this.#take()?.resolve(value);
  }

  reject(error: Error): void {
    this.#take()?.reject(error);
  }

  #take(): Outcome<T> | undefined {
    const awaited = this.#awaited;
    this.#awaited = undefined;
    return awaited;
  }
}

/** The same promise; an ignored rejection does not end the process. */
export function markHandled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
