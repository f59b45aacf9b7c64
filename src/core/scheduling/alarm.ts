import type { Clock, Scheduled } from '../ports/clock.js';

/** The longest time that a clock jump or a suspended system can go unnoticed, ms. */
const LONGEST_SLICE_MS = 60_000;

/** Certificates and tokens are dated in whole seconds; a smaller jump does not matter. */
const SMALLEST_JUMP_MS = 1_000;

/**
 * Waits for a point in time, however distant, in slices: no long delay reaches a timer, and after each slice the wall
 * clock is compared with the monotonic one. The alarm goes off as soon as either clock has reached that time, so a jump
 * or a suspended system delays it by at most one slice.
 */
export class Alarm {
  readonly #clock: Clock;
  readonly #timing: { readonly ref: boolean };
  readonly #onDue: () => void;
  readonly #onJump: (jumpMs: number) => void;
  #timer: Scheduled | undefined;
  /** When the alarm goes off, by either clock; `Infinity` while it is not set. */
  #dueWall = Infinity;
  #dueMonotonic = Infinity;
  #driftMs: number;

  /**
   * @param onJump called with how far the wall clock jumped, ms, before the alarm goes off; it may set the alarm again.
   * @param ref whether waiting keeps the process alive.
   */
  constructor(clock: Clock, ref: boolean, onDue: () => void, onJump: (jumpMs: number) => void = () => {}) {
    this.#clock = clock;
    this.#timing = { ref };
    this.#onDue = onDue;
    this.#onJump = onJump;
    this.#driftMs = clock.now() - clock.monotonic();
  }

  /** When the alarm goes off, epoch ms; undefined while it is not set. */
  get at(): number | undefined {
    const { remainingMs } = this;
    return Number.isFinite(remainingMs) ? this.#clock.now() + remainingMs : undefined;
  }

  /** The time until the alarm goes off, ms; `Infinity` while it is not set. */
  get remainingMs(): number {
    return Math.max(0, this.#remaining(this.#clock.now(), this.#clock.monotonic()));
  }

  /** Sets the alarm to go off in `delayMs`, replacing any earlier setting. */
  set(delayMs: number): void {
    this.#dueWall = this.#clock.now() + delayMs;
    this.#dueMonotonic = this.#clock.monotonic() + delayMs;
    this.#sleep(delayMs);
  }

  /** Brings the alarm forward to `delayMs` from now if it was set to later; returns whether it was. */
  bringForward(delayMs: number): boolean {
    const { remainingMs } = this;
    const isSooner = delayMs < remainingMs;
    if (isSooner) this.set(delayMs);
    // The clock may have jumped since the slice began, so the alarm may already be due.
    else if (this.#timer) this.#sleep(remainingMs);
    return isSooner;
  }

  clear(): void {
    this.#dueWall = Infinity;
    this.#dueMonotonic = Infinity;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #sleep(remainingMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.schedule(this.#check, Math.min(remainingMs, LONGEST_SLICE_MS), this.#timing);
  }

  readonly #check = (): void => {
    this.#timer = undefined;
    const wall = this.#clock.now();
    const monotonic = this.#clock.monotonic();
    const jumpMs = wall - monotonic - this.#driftMs;
    this.#driftMs += jumpMs;
    if (Math.abs(jumpMs) >= SMALLEST_JUMP_MS) this.#onJump(jumpMs);
    const remainingMs = this.#remaining(wall, monotonic);
    if (remainingMs > 0) {
      if (remainingMs < Infinity) this.#sleep(remainingMs);
      return;
    }
    this.clear();
    this.#onDue();
  };

  #remaining(wall: number, monotonic: number): number {
    return Math.min(this.#dueWall - wall, this.#dueMonotonic - monotonic);
  }
}
