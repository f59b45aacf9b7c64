import { errnoOf } from './errno.js';
import { recognize, redactError, ResilientError } from './resilient-error.js';

/** The object was closed. */
export class ClosedError extends ResilientError {
  override readonly name = 'ClosedError';
  readonly code = 'ERR_CLOSED';
}
recognize(ClosedError, 'ClosedError');

/** A listener threw or rejected; `cause` is a copy of the thrown value, without secrets. */
export class ListenerError extends ResilientError {
  override readonly name = 'ListenerError';
  readonly code = 'ERR_LISTENER';
  /** The event that it listened to, or the option with the function. */
  readonly event: string;

  /** @param secrets removed wherever they occur in the thrown value. */
  constructor(event: string, thrown: unknown, secrets: readonly string[] = []) {
    const cause = redactError(thrown, secrets);
    super(`A listener of "${event}" failed: ${cause.message}`, { cause });
    this.event = event;
  }
}
recognize(ListenerError, 'ListenerError');

/** The `code` of an error of this library or of Node; null if there is none. */
export function errorCodeOf(error: Error): string | null {
  return error instanceof ResilientError ? error.code : (errnoOf(error) ?? null);
}
