import { basename } from 'node:path';

import {
  ResilientWatcher,
  type ResilientWatcherOptions,
  type Snapshot,
  type TargetError,
  type WatchBackend,
} from 'resilient-watcher';
import { FakeClock, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished } from 'vitest';

import { nodeFsBackend } from '../../src/watch/backends/node-fs.js';
import { ParcelBackend } from '../../src/watch/backends/parcel.js';
import { pollingBackend } from '../../src/watch/backends/polling.js';
import { FragileBackend } from './fragile-backend.js';
import { temporaryDirectory } from './temporary-directory.js';

/** How hints come: told by the test, by the clock under fake time, or by the kernel in real time. */
export type SceneKind = 'scripted' | 'poll' | 'fs' | 'parcel';

/** Whether a gap in which the target is missing is to be short or long compared with the grace. */
type Grace = 'longer than gaps' | 'shorter than gaps';

/** How a scene is watched. */
export interface SceneOptions extends ResilientWatcherOptions {
  readonly grace?: Grace;
  /** The test lets the backend die, or loses its hints: see `Scene.fragile`. */
  readonly fragile?: boolean;
  /** There is a resync, and hints come first. */
  readonly resync?: boolean;
}

/** More than parcel and the settling take together, so that a hint can be first, ms. */
const BACKSTOP_MS = 350;

/** What a listener of `change` was told, as text. */
const MISSING = '(missing)';

/** A file's content; of several files each with its key, of a group with its name. */
function textOf({ kind, content, files }: Snapshot): string {
  if (kind === 'missing') return MISSING;
  if (kind === 'file') return String(content);
  const name = (key: string): string => (kind === 'group' ? basename(key) : key);
  const texts = [...files].map(([key, file]) => `${name(key)}=${String(file.content)}`);
  // The files of a tree come in no order.
  return (kind === 'tree' ? texts.sort() : texts).join(' ');
}

/** A watcher on a stage: things happen to its target, and what it reports is checked in order. */
export interface Scene {
  /** A directory for the test. */
  readonly root: string;
  /** Everything reported so far, in order; a missing target is `(missing)`. */
  readonly reported: readonly string[];
  readonly revisions: readonly string[];
  readonly errors: readonly Error[];
  /** What the changes so far were caused by. */
  readonly causes: readonly string[];
  readonly watcher: ResilientWatcher;
  /** Of a scene that is to be `fragile`. */
  readonly fragile: FragileBackend;
  watch(path: string | readonly string[], options?: SceneOptions): Promise<void>;
  /** The next report, and by now the only one outstanding, is this. */
  reports(expected: string): Promise<void>;
  reportsMissing(): Promise<void>;
  /** This is reported, whatever is reported on the way there. */
  comesTo(expected: string): Promise<void>;
  /** The next error, and the only one outstanding, is a `TargetError` with this code. */
  fails(code: TargetError['code']): Promise<void>;
  /** A look is taken and leads to no report, but time does not pass. */
  unreported(): Promise<void>;
  /** Nothing is reported, however long one waits. */
  quiet(): Promise<void>;
}

/** A scene with hints of this kind. */
export function openScene(kind: SceneKind): Scene {
  return kind === 'scripted' || kind === 'poll' ? new FakeScene(kind) : new KernelScene(kind);
}

abstract class BaseScene {
  readonly root = temporaryDirectory();
  readonly reported: string[] = [];
  readonly revisions: string[] = [];
  readonly causes: string[] = [];
  readonly errors: Error[] = [];
  #watcher: ResilientWatcher | undefined;
  #fragile: FragileBackend | undefined;
  #expected = 0;
  #expectedErrors = 0;

  get watcher(): ResilientWatcher {
    if (!this.#watcher) throw new Error('watch() comes first');
    return this.#watcher;
  }

  get fragile(): FragileBackend {
    if (!this.#fragile) throw new Error('watch() with `fragile` comes first');
    return this.#fragile;
  }

  protected madeFragile(backend: WatchBackend): WatchBackend {
    this.#fragile = new FragileBackend(backend);
    return this.#fragile;
  }

  protected async open(path: string | readonly string[], options: ResilientWatcherOptions): Promise<void> {
    const watcher = new ResilientWatcher(path, options);
    this.#watcher = watcher;
    watcher.on('change', ({ current, cause }) => {
      this.reported.push(textOf(current));
      this.causes.push(cause);
      this.noticed();
    });
    watcher.on('revision', ({ current }) => {
      this.revisions.push(current);
    });
    watcher.on('error', (error) => {
      this.errors.push(error);
      this.noticed();
    });
    watcher.on('unreadable', ({ error }) => {
      this.errors.push(error);
      this.noticed();
    });
    onTestFinished(() => watcher.close());
    await watcher.start();
  }

  async reports(expected: string): Promise<void> {
    this.#expected += 1;
    await this.until(() => this.reported.length >= this.#expected);
    this.check(expected);
  }

  async comesTo(expected: string): Promise<void> {
    await this.until(() => this.reported.at(-1) === expected && this.reported.length > this.#expected);
    expect(this.reported.slice(this.#expected).at(-1)).toBe(expected);
    this.#expected = this.reported.length;
  }

  async fails(code: TargetError['code']): Promise<void> {
    this.#expectedErrors += 1;
    await this.until(() => this.errors.length >= this.#expectedErrors);
    expect(this.errors.slice(this.#expectedErrors - 1)).toMatchObject([{ name: 'TargetError', code }]);
  }

  reportsMissing(): Promise<void> {
    return this.reports(MISSING);
  }

  async unreported(): Promise<void> {
    await this.watcher.check();
    this.check();
  }

  protected check(...last: string[]): void {
    expect([...this.reported.slice(0, this.#expected - last.length), ...last]).toEqual(this.reported);
  }

  protected abstract noticed(): void;
  /** Resolves when that is so; in fake time also when it will not be. */
  protected abstract until(isSo: () => boolean): Promise<void>;
}

/** Fake time: what is due happens when the scene says so, and nothing else does. */
class FakeScene extends BaseScene implements Scene {
  readonly #clock = new FakeClock();
  readonly #backend = new ScriptedBackend();
  readonly #kind: 'scripted' | 'poll';

  constructor(kind: 'scripted' | 'poll') {
    super();
    this.#kind = kind;
  }

  watch(
    path: string | readonly string[],
    { grace: _, fragile = false, resync = false, ...options }: SceneOptions = {},
  ): Promise<void> {
    const real = this.#kind === 'poll' ? pollingBackend(this.#clock, 1_000) : this.#backend;
    const named = this.#kind === 'poll' ? 'poll' : real;
    const backend = fragile ? this.madeFragile(real) : named;
    const resyncIntervalMs = resync ? 1_500 : 0;
    return this.open(path, { backend, clock: this.#clock, resyncIntervalMs, ...options });
  }

  async quiet(): Promise<void> {
    await this.#pass();
    this.check();
  }

  protected noticed(): void {
    // Looks are driven by #pass().
  }

  protected until(isSo: () => boolean): Promise<void> {
    return this.#pass(isSo);
  }

  /** From timer to timer until that is so, at most for the time of a poll, the grace and any settling. */
  async #pass(isSo = (): boolean => false): Promise<void> {
    this.#backend.hint();
    await this.watcher.idle();
    const end = this.#clock.monotonic() + 2_000;
    for (let left = 2_000; left > 0 && !isSo(); left = end - this.#clock.monotonic()) {
      await this.#clock.advance(Math.min(this.#clock.delays[0] ?? left, left));
      await this.watcher.idle();
    }
  }
}

/** Real time and the kernel's own hints; without a resync, so that only they can be the reason of a report. */
class KernelScene extends BaseScene implements Scene {
  readonly #kind: 'fs' | 'parcel';
  #waiting: (() => void) | undefined;

  constructor(kind: 'fs' | 'parcel') {
    super();
    this.#kind = kind;
  }

  watch(
    path: string | readonly string[],
    { grace = 'longer than gaps', fragile = false, resync = false, ...options }: SceneOptions = {},
  ): Promise<void> {
    const missingGraceMs = grace === 'longer than gaps' ? 600_000 : 1;
    const real = this.#kind === 'fs' ? nodeFsBackend : new ParcelBackend();
    const backend = fragile ? this.madeFragile(real) : this.#kind;
    const resyncIntervalMs = resync ? BACKSTOP_MS : 0;
    return this.open(path, { backend, resyncIntervalMs, missingGraceMs, ...options });
  }

  async quiet(): Promise<void> {
    await this.unreported();
  }

  protected noticed(): void {
    this.#waiting?.();
  }

  protected async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
  }
}
