/** Hands out a value that is replaced from time to time: a token, a password, a certificate. */
export interface ValueSource<T> {
  /** The last good value; undefined before there was one. Never waits and never throws. */
  readonly current: T | undefined;
  /** A value that is good now; rejects when there is none. */
  get(): Promise<T>;
}
