import { ResilientWatcher, type ResilientWatcherOptions } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';

import { pollingBackend } from '../../src/watch/backends/polling.js';
import { realIo } from './real-io.js';
import { Scene, type SceneOptions } from './scene.js';

/** Longer than a poll, the grace and any settling together, ms. */
const LONG_MS = 2_000;

interface Settings {
  /** Hints come when the test gives them, or when the clock polls. */
  readonly hints?: 'scripted' | 'poll';
}

/** Time passes until this promise is settled, and only if it waits for it. */
export async function timePasses(clock: FakeClock, promise: Promise<unknown>): Promise<void> {
  const state = { isSettled: false };
  const settled = promise.finally(() => {
    state.isSettled = true;
  });
  settled.catch(() => undefined);
  await realIo();
  while (!state.isSettled) {
    await clock.advance(100);
    await realIo();
  }
  await settled;
}

/** A watcher for which time passes while `start()`, `add()` or `remove()` waits for it. */
class PassingWatcher extends ResilientWatcher {
  readonly #clock: FakeClock;
  readonly #starts = new Map<Promise<void>, Promise<void>>();

  constructor(clock: FakeClock, ...args: ConstructorParameters<typeof ResilientWatcher>) {
    super(...args);
    this.#clock = clock;
  }

  override start(): Promise<void> {
    const started = super.start();
    const passing = this.#starts.get(started) ?? timePasses(this.#clock, started);
    this.#starts.set(started, passing);
    return passing;
  }

  // A file that was written and renamed within one tick of the kernel's clock settles first.
  override add(path: string | URL): Promise<void> {
    return timePasses(this.#clock, super.add(path));
  }

  override remove(path: string | URL): Promise<void> {
    return timePasses(this.#clock, super.remove(path));
  }
}

/** A scene with fake time: timers fire only when the test advances the clock. */
export class ScriptedScene extends Scene {
  /** Where it begins the files of the scene are new, and later they are not. */
  readonly clock = new FakeClock(Date.now());
  readonly backend: ScriptedBackend;
  /** A file below `root`, which the test writes. */
  readonly file = this.at('app.yaml');
  /** A volume below `root`, which the test publishes. */
  readonly volume = new KubeletVolume(this.at('volume'));
  readonly #polls: boolean;

  constructor({ hints = 'scripted' }: Settings = {}) {
    super();
    this.backend = new ScriptedBackend('scripted');
    this.#polls = hints === 'poll';
  }

  watch(
    target: string | readonly string[],
    { grace: _, fragile = false, resync = false, ...options }: SceneOptions = {},
  ): Promise<void> {
    const real = this.#polls ? pollingBackend(this.clock, 1_000) : this.backend;
    const plain = this.#polls ? 'poll' : real;
    return this.open(target, {
      backend: fragile ? this.makeFragile(real) : plain,
      clock: this.clock,
      resyncIntervalMs: resync ? 1_500 : 0,
      ...options,
    });
  }

  /** Its retries come after the whole delay. */
  protected override construct(
    target: string | readonly string[],
    options: ResilientWatcherOptions,
  ): ResilientWatcher {
    const { clock, backend } = this;
    // Making the files may have taken a while.
    clock.jump(Math.max(0, Date.now() - clock.now()));
    return new PassingWatcher(clock, target, { clock, backend, random: () => 0, ...options });
  }

  /** A hint and its check; no time passes. */
  async hint(path?: string): Promise<void> {
    this.backend.hint(path);
    await this.watcher.idle();
  }

  /** Time passes, from timer to timer, with all checks that this leads to. */
  async pass(ms: number, isEnough = (): boolean => false): Promise<void> {
    await this.watcher.idle();
    const end = this.clock.monotonic() + ms;
    for (let left = ms; left > 0 && !isEnough(); left = end - this.clock.monotonic()) {
      await this.clock.advance(Math.min(this.clock.delays[0] ?? left, left));
      await this.watcher.idle();
    }
  }

  /** A hint, and time for all that it leads to. */
  async settle(): Promise<void> {
    await this.hint();
    await this.pass(LONG_MS);
  }

  async quiet(): Promise<void> {
    await this.settle();
    this.expectReported();
  }

  async until(isSo: () => boolean): Promise<void> {
    await this.hint();
    await this.pass(LONG_MS, isSo);
  }
}
