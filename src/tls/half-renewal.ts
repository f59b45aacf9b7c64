/**
 * A pair that is renewed file by file: between the two writes, the certificate, the key or its passphrase do not match.
 *
 * | state   | what comes                       | then                                                                |
 * |---------|----------------------------------|---------------------------------------------------------------------|
 * | settled | a half                           | waiting for the other half, `groupSettleMs`                         |
 * | waiting | a half                           | goes on, however often one is written; the newest one counts        |
 * | waiting | a good set, or another fault     | settled: it is used, or refused                                     |
 * | waiting | the time is over, or `check()`   | settled: the half is refused                                        |
 *
 * A mismatch is no half if everything comes from one file or one revision, which are complete, and before the first
 * good set.
 */
import { Alarm } from '../core/scheduling/alarm.js';
import type { Clock } from '../core/ports/clock.js';
import type { ResilientError } from '../core/errors/resilient-error.js';
import type { Snapshot } from '../fs/snapshot.js';
import { TlsError, type TlsErrorCode } from './tls-error.js';
import type { TlsPlace } from './tls-paths.js';

/** A keystore and its passphrase fail in a parser. */
const MISMATCHES: readonly TlsErrorCode[] = ['ERR_TLS_MISMATCH', 'ERR_TLS_PARSE'];

/** @param places of what has to match */
export function isHalf(
  error: Error,
  places: readonly (TlsPlace | undefined)[],
  { revision }: Snapshot,
): boolean {
  const isMismatch = error instanceof TlsError && MISMATCHES.includes(error.code);
  const paths = new Set(places.flatMap((place) => place?.path ?? []));
  return isMismatch && revision === undefined && paths.size > 1;
}

export class HalfRenewal {
  readonly #waitMs: number;
  readonly #refuse: (error: ResilientError) => void;
  readonly #over: Alarm;
  /** Why the half cannot be used; undefined while settled. */
  #error: ResilientError | undefined;

  constructor(clock: Clock, waitMs: number, refuse: (error: ResilientError) => void) {
    this.#waitMs = waitMs;
    this.#refuse = refuse;
    this.#over = new Alarm(clock, false, () => this.giveUp());
  }

  wait(error: ResilientError): void {
    if (!this.#error) this.#over.set(this.#waitMs);
    this.#error = error;
  }

  giveUp(): void {
    const error = this.#error;
    this.settle();
    if (error) this.#refuse(error);
  }

  settle(): void {
    this.#error = undefined;
    this.#over.clear();
  }
}
