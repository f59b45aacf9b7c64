import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { onTestFinished } from 'vitest';

import { nodeFsBackend } from '../../src/watch/backends/node-fs.js';
import { parcelBackend } from '../../src/watch/backends/parcel.js';
import { Scene, type SceneOptions } from './scene.js';
import { temporaryDirectory } from './temporary-directory.js';

/** More than parcel and the settling take together, so that a hint can be first, ms. */
const RESYNC_MS = 350;

/** Twice what a file settles by default, ms. */
const SENTINEL_SETTLE_MS = 100;

/** Real time and the kernel's own hints; without a resync, so that only they can be the reason of a report. */
export class KernelScene extends Scene {
  readonly #kind: 'fs' | 'parcel';
  #waiting: (() => void) | undefined;
  #sentinel: Promise<Sentinel> | undefined;

  constructor(kind: 'fs' | 'parcel') {
    super();
    this.#kind = kind;
  }

  watch(
    target: string | readonly string[],
    { grace = 'longer than gaps', fragile = false, resync = false, ...options }: SceneOptions = {},
  ): Promise<void> {
    const real = this.#kind === 'fs' ? nodeFsBackend() : parcelBackend(nodeFsBackend());
    return this.open(target, {
      backend: fragile ? this.makeFragile(real) : this.#kind,
      resyncIntervalMs: resync ? RESYNC_MS : 0,
      missingGraceMs: grace === 'longer than gaps' ? 600_000 : 1,
      ...options,
    });
  }

  /**
   * Nothing that has happened so far is reported. A sentinel that is written now, and settles for longer, is reported
   * after all that: the kernel keeps the order of its events, and the process that of its timers.
   */
  async quiet(): Promise<void> {
    this.#sentinel ??= Sentinel.open(this.#kind);
    await (await this.#sentinel).passes();
    await this.unreported();
  }

  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
  }

  protected override noticed(): void {
    this.#waiting?.();
  }
}

/** A file that is watched in the same way, elsewhere. */
class Sentinel {
  readonly #file = join(temporaryDirectory(), 'sentinel');
  readonly #watcher: ResilientWatcher;
  #passes = 0;

  private constructor(backend: 'fs' | 'parcel') {
    writeFileSync(this.#file, '0');
    this.#watcher = new ResilientWatcher(this.#file, {
      backend,
      settleMs: SENTINEL_SETTLE_MS,
      resyncIntervalMs: 0,
    });
    onTestFinished(() => this.#watcher.close());
  }

  static async open(backend: 'fs' | 'parcel'): Promise<Sentinel> {
    const sentinel = new Sentinel(backend);
    await sentinel.#watcher.start();
    return sentinel;
  }

  /** Resolves when a write that is made now is reported. */
  async passes(): Promise<void> {
    const text = String((this.#passes += 1));
    const reported = new Promise<void>((resolve) => {
      this.#watcher.on('change', ({ current }) => {
        if (String(current.content) === text) resolve();
      });
    });
    // In place, so that it settles.
    writeFileSync(this.#file, text);
    await reported;
  }
}
