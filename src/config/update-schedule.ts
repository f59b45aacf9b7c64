import type { Clock, Scheduled } from '../core/ports/clock.js';
import { begin } from '../core/scheduling/outcome.js';
import type { LoadedSource } from './loaded-source.js';

interface UpdateScheduleOptions {
  readonly sources: readonly LoadedSource[];
  readonly clock: Clock;
  readonly settleMs: number;
  /** Reads these sources and accepts valid values. `retry`: also validates refused values again. Never rejects. */
  readonly update: (sources: readonly LoadedSource[], retry: boolean) => Promise<void>;
}

/**
 * Decides when updates begin. Two updates never overlap.
 *
 * | when a source changes              | the update begins                                    |
 * |------------------------------------|------------------------------------------------------|
 * | before `open()`                    | after `open()`, as in the next two rows              |
 * | every watched source has changed   | immediately: there is nothing to wait for            |
 * | other sources have not changed yet | `settleMs` after the first, or when all have changed |
 * | an update is in progress           | `settleMs` after its end                             |
 * | after `close()`                    | never                                                |
 */
export class UpdateSchedule {
  readonly #options: UpdateScheduleOptions;
  /** How many sources can be watched. */
  readonly #watched: number;
  readonly #changed = new Set<LoadedSource>();
  #isOpen = false;
  #settling: Scheduled | undefined;
  #updating: Promise<void> | undefined;

  constructor(options: UpdateScheduleOptions) {
    this.#options = options;
    this.#watched = options.sources.filter(({ isWatchable }) => isWatchable).length;
  }

  /** Forgets the changes so far. */
  reset(): void {
    this.#changed.clear();
  }

  /** Allows updates, after the first configuration is loaded. */
  open(): void {
    this.#isOpen = true;
    this.#plan();
  }

  /** Ends updates. One that is in progress is not awaited. */
  close(): void {
    this.#isOpen = false;
    this.#settling?.cancel();
  }

  /** A source has changed. */
  changed(source: LoadedSource): void {
    this.#changed.add(source);
    this.#plan();
  }

  /** Reads and validates everything again, after the update in progress. Resolves to false if not allowed. */
  async updateAll(): Promise<boolean> {
    while (this.#updating) await this.#updating;
    if (!this.#isOpen) return false;
    for (const source of this.#options.sources) this.#changed.add(source);
    await this.#update(true);
    return true;
  }

  #plan(): void {
    if (!this.#isOpen || this.#updating || this.#changed.size === 0) return;
    if (this.#changed.size === this.#watched) void this.#update(false);
    else this.#settle();
  }

  #settle(): void {
    const { clock, settleMs } = this.#options;
    this.#settling ??= clock.schedule(() => void this.#update(false), settleMs);
  }

  #update(retry: boolean): Promise<void> {
    this.#settling?.cancel();
    this.#settling = undefined;
    const sources = [...this.#changed];
    this.#changed.clear();
    // A provider may call back while it is read.
    return begin(
      (updating) => (this.#updating = updating),
      async () => {
        await this.#options.update(sources, retry);
        this.#updating = undefined;
        // Waits even with a single source, which must not keep the process busy if it changes all the time.
        if (this.#changed.size > 0 && this.#isOpen) this.#settle();
      },
    );
  }
}
