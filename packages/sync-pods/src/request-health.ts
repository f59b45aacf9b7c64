const UNHEALTHY_AFTER = 3;

/** Failures in a row, by what was tried: a success of one thing says nothing of another. */
export class RequestHealth {
  readonly #failures = new Map<string, number>();

  /** Whether nothing has failed three times in a row. */
  get isHealthy(): boolean {
    return [...this.#failures.keys()].every((what) => this.isHealthyAt(what));
  }

  isHealthyAt(what: string): boolean {
    return (this.#failures.get(what) ?? 0) < UNHEALTHY_AFTER;
  }

  /** Returns whether everything is healthy again. */
  succeeded(what: string): boolean {
    const wasHealthy = this.isHealthyAt(what);
    this.#failures.delete(what);
    return !wasHealthy && this.isHealthy;
  }

  /** Returns the failures in a row. */
  failed(what: string): number {
    const failures = (this.#failures.get(what) ?? 0) + 1;
    this.#failures.set(what, failures);
    return failures;
  }
}
