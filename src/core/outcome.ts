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

/** The same promise; an ignored rejection does not end the process. */
export function markHandled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
