/** A source of a value that is replaced from time to time: a token, a password, a certificate. */
export interface ValueSource<T> {
  /** The last good value; undefined before the first one. Never waits and never throws. */
  readonly current: T | undefined;
  /** A value that is valid now; rejects if there is none. */
  get(): Promise<T>;
}
