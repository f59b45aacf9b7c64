import { basename } from 'node:path';

import { ResilientWatcher, type ResilientWatcherOptions, type Snapshot } from 'resilient-watcher';
import { FakeClock, ScriptedBackend } from 'resilient-watcher/testing';
import { expect, onTestFinished } from 'vitest';

import { temporaryDirectory } from './temporary-directory.js';

/** How hints come: told by the test, by the clock under fake time, or by the kernel in real time. */
export type SceneKind = 'scripted' | 'poll' | 'fs' | 'parcel';

/** Whether a gap in which the target is missing is to be short or long compared with the grace. */
export type Grace = 'longer than gaps' | 'shorter than gaps';

/** What a listener of `change` was told, as text. */
const MISSING = '(missing)';

/** A file's content; of several files each with its name. */
function textOf({ kind, content, files }: Snapshot): string {
  if (kind === 'missing') return MISSING;
  if (kind === 'file') return String(content);
  return [...files].map(([key, file]) => `${basename(key)}=${String(file.content)}`).join(' ');
}

/** A watcher on a stage: things happen to its target, and what it reports is checked in order. */
export interface Scene {
  /** A directory for the test. */
  readonly root: string;
  /** Everything reported so far, in order; a missing target is `(missing)`. */
  readonly reported: readonly string[];
  readonly revisions: readonly string[];
  readonly errors: readonly Error[];
  watcher: ResilientWatcher;
  watch(
    path: string | readonly string[],
    options?: ResilientWatcherOptions & { readonly grace?: Grace },
  ): Promise<void>;
  /** The next report, and by now the only one outstanding, is this. */
  reports(expected: string): Promise<void>;
  reportsMissing(): Promise<void>;
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
  readonly errors: Error[] = [];
  #watcher: ResilientWatcher | undefined;
  #expected = 0;

  get watcher(): ResilientWatcher {
    if (!this.#watcher) throw new Error('watch() comes first');
    return this.#watcher;
  }

  protected async open(path: string | readonly string[], options: ResilientWatcherOptions): Promise<void> {
    const watcher = new ResilientWatcher(path, options);
    this.#watcher = watcher;
    watcher.on('change', ({ current }) => {
      this.reported.push(textOf(current));
      this.noticed();
    });
    watcher.on('revision', ({ current }) => {
      this.revisions.push(current);
    });
    watcher.on('error', (error) => {
      this.errors.push(error);
    });
    onTestFinished(() => watcher.close());
    await watcher.start();
  }

  async reports(expected: string): Promise<void> {
    this.#expected += 1;
    await this.awaitReport(this.#expected);
    this.check(expected);
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
  protected abstract awaitReport(count: number): Promise<void>;
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
    { grace: _, ...options }: ResilientWatcherOptions & { readonly grace?: Grace } = {},
  ): Promise<void> {
    const backend = this.#kind === 'poll' ? 'poll' : this.#backend;
    return this.open(path, { backend, clock: this.#clock, resyncIntervalMs: 0, ...options });
  }

  async quiet(): Promise<void> {
    await this.#pass();
    this.check();
  }

  protected noticed(): void {
    // Looks are driven by #pass().
  }

  protected awaitReport(): Promise<void> {
    return this.#pass();
  }

  /** Enough time for a poll, the grace and any settling. */
  async #pass(): Promise<void> {
    this.#backend.hint();
    for (let second = 0; second < 2; second += 1) {
      await this.watcher.idle();
      await this.#clock.advance(1_000);
    }
    await this.watcher.idle();
  }
}

/** Real time and the kernel's own hints; without a backstop, so that only they can be the reason of a report. */
class KernelScene extends BaseScene implements Scene {
  readonly #kind: 'fs' | 'parcel';
  #waiting: (() => void) | undefined;

  constructor(kind: 'fs' | 'parcel') {
    super();
    this.#kind = kind;
  }

  watch(
    path: string | readonly string[],
    { grace = 'longer than gaps', ...options }: ResilientWatcherOptions & { readonly grace?: Grace } = {},
  ): Promise<void> {
    const missingGraceMs = grace === 'longer than gaps' ? 600_000 : 1;
    return this.open(path, { backend: this.#kind, resyncIntervalMs: 0, missingGraceMs, ...options });
  }

  async quiet(): Promise<void> {
    await this.unreported();
  }

  protected noticed(): void {
    this.#waiting?.();
  }

  protected async awaitReport(count: number): Promise<void> {
    while (this.reported.length < count) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
  }
}
