import type { Clock, Scheduled } from '../ports.js';

/** How long it may take to notice that a clock jumped or the machine slept. */
const LONGEST_SLICE_MS = 60_000;

/** Certificates and tokens are dated in whole seconds; a smaller step changes nothing for them. */
const SMALLEST_JUMP_MS = 1_000;

/**
 * Waits for a moment, however far, in slices: no long delay reaches a timer, and after each slice the wall clock
 * is compared with the monotonic one. It goes off as soon as either has come to the moment, so neither a jump
 * nor a slept-through hour makes it late by more than a slice.
 */
export class Alarm {
  readonly #clock: Clock;
  readonly #ref: boolean;
  readonly #onDue: () => void;
  readonly #onJump: (jumpMs: number) => void;
  #timer: Scheduled | undefined;
  #due: { readonly wall: number; readonly monotonic: number } | undefined;
  #driftMs: number;

  /**
   * @param onJump told how far the wall clock jumped, ms, before the alarm goes off; it may set it anew.
   * @param ref whether waiting keeps the process alive.
   */
  constructor(clock: Clock, ref: boolean, onDue: () => void, onJump: (jumpMs: number) => void = () => {}) {
    this.#clock = clock;
    this.#ref = ref;
    this.#onDue = onDue;
    this.#onJump = onJump;
    this.#driftMs = clock.now() - clock.monotonic();
  }

  /** When it goes off, epoch ms; undefined while it is not set. */
  get at(): number | undefined {
    return this.#due && this.#clock.now() + this.#remainingMs(this.#due);
  }

  /** How long until it goes off, ms; `Infinity` while it is not set. */
  get remainingMs(): number {
    return this.#due ? this.#remainingMs(this.#due) : Infinity;
  }

  /** Goes off in `delayMs`, and not when it was to before. */
  set(delayMs: number): void {
    this.#due = { wall: this.#clock.now() + delayMs, monotonic: this.#clock.monotonic() + delayMs };
    this.#sleep();
  }

  /** Goes off in `delayMs`, if it was to go off later; returns whether it was. */
  hasten(delayMs: number): boolean {
    const isSooner = delayMs < this.remainingMs;
    if (isSooner) this.set(delayMs);
    // The clock may have jumped since the slice began, and by now it may be due.
    else if (this.#due) this.#sleep();
    return isSooner;
  }

  clear(): void {
    this.#due = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #sleep(): void {
    this.#timer?.cancel();
    const sliceMs = Math.min(this.remainingMs, LONGEST_SLICE_MS);
    this.#timer = this.#clock.schedule(this.#look, sliceMs, { ref: this.#ref });
  }

  readonly #look = (): void => {
    const driftMs = this.#clock.now() - this.#clock.monotonic();
    const jumpMs = driftMs - this.#driftMs;
    this.#driftMs = driftMs;
    if (Math.abs(jumpMs) >= SMALLEST_JUMP_MS) this.#onJump(jumpMs);
    if (!this.#due) return;
    if (this.#remainingMs(this.#due) > 0) {
      this.#sleep();
      return;
    }
    this.clear();
    this.#onDue();
  };

  #remainingMs(due: { wall: number; monotonic: number }): number {
    return Math.max(0, Math.min(due.wall - this.#clock.now(), due.monotonic - this.#clock.monotonic()));
  }
}
