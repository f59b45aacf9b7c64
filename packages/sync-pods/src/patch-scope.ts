import type { Random } from 'resilient-watcher';

import { ApiBackoff } from './api-backoff.js';

/** Patches that fail together: all of them, or those of one namespace. */
export class PatchScope {
  /** Undefined: all of them. */
  readonly namespace: string | undefined;
  /** What fails, for messages. */
  readonly what: string;
  readonly #mostInFlight: number;
  readonly #backoff: ApiBackoff;
  /** How many patches are on their way. */
  inFlight = 0;
  /** Not before this a dry run asks whether a patch would succeed, monotonic ms. */
  askAt = -Infinity;
  /** When the failure was seen that has closed it; undefined while it is open. */
  #closedAt: number | undefined;
  /** When a patch tries it again. */
  #closedUntil = -Infinity;
  #isTried = false;

  constructor(namespace: string | undefined, mostInFlight: number, random: Random) {
    this.namespace = namespace;
    this.what = namespace === undefined ? 'patch pods' : `patch pods in ${namespace}`;
    this.#mostInFlight = mostInFlight;
    this.#backoff = new ApiBackoff(random);
  }

  /** While it is closed, one patch at a time tries it. */
  isFree(now: number): boolean {
    const isTaken = this.#closedAt !== undefined && this.#isTried;
    return !isTaken && this.inFlight < this.#mostInFlight && now >= this.#closedUntil;
  }

  /** When the next patch tries it; `-Infinity` while it is open. */
  get closedUntil(): number {
    return this.#closedUntil;
  }

  /** A patch is sent; returns what to call when it has ended. */
  begin(): () => void {
    const tries = this.#closedAt !== undefined;
    this.inFlight += 1;
    if (tries) this.#isTried = true;
    return () => {
      this.inFlight -= 1;
      if (tries) this.#isTried = false;
    };
  }

  /** Whether a patch that was sent then belongs to the failure that is known. */
  hasFailedSince(sentAt: number): boolean {
    return this.#closedAt !== undefined && this.#closedAt >= sentAt;
  }

  /** Returns the delay until the next attempt, ms. */
  close(now: number, error: unknown): number {
    const delayMs = this.#backoff.after(error);
    this.#closedAt = now;
    this.closeUntil(now + delayMs);
    return delayMs;
  }

  /** Stays closed at least until then. */
  closeUntil(time: number): void {
    this.#closedUntil = Math.max(this.#closedUntil, time);
    this.askAt = this.#closedUntil;
  }

  /** The answer to a dry run says nothing about it. */
  askLater(now: number, error: unknown): void {
    this.askAt = now + this.#backoff.after(error);
  }

  open(): void {
    this.#closedAt = undefined;
    this.#closedUntil = -Infinity;
    this.askAt = -Infinity;
    this.#backoff.reset();
  }
}
