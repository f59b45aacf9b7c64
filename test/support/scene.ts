import { chmodSync, mkdirSync, renameSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import {
  ResilientWatcher,
  type Change,
  type ResilientWatcherOptions,
  type Snapshot,
  type TargetError,
  type WatchBackend,
} from 'resilient-watcher';
import { expect, onTestFinished } from 'vitest';

import { FragileBackend } from './fragile-backend.js';
import { temporaryDirectory } from './temporary-directory.js';

/** How a scene is watched. */
export interface SceneOptions extends ResilientWatcherOptions {
  /** Whether a gap in which the target is missing is short or long compared with the grace. */
  readonly grace?: 'longer than gaps' | 'shorter than gaps';
  /** The test makes the backend die, or loses its hints: see `Scene.fragile`. */
  readonly fragile?: boolean;
  /** There is a resync, and hints come first. */
  readonly resync?: boolean;
}

/** A missing target, as text. */
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

/** A target on real files, its watcher, and what that reports, which is checked in order. */
export abstract class Scene {
  /** A directory for the test. */
  readonly root = temporaryDirectory();
  readonly changes: Change[] = [];
  /** Each change as text; a missing target is `(missing)`. */
  readonly reported: string[] = [];
  readonly revisions: string[] = [];
  /** Each event in a line, such as `change one by start`. */
  readonly events: string[] = [];
  readonly warnings: string[] = [];
  /** What `error` and `unreadable` said. */
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

  /** The causes of the changes so far. */
  get causes(): string[] {
    return this.changes.map(({ cause }) => cause);
  }

  /** A path below `root`. */
  at(path: string): string {
    return join(this.root, path);
  }

  /** Creates a directory with files that were written an hour ago, with its name as their text. */
  writeOld(directory: string, names: readonly string[]): void {
    mkdirSync(this.at(directory));
    const anHourAgo = Date.now() / 1e3 - 3_600;
    for (const path of names.map((name) => this.at(`${directory}/${name}`))) {
      writeFileSync(path, directory);
      utimesSync(path, anHourAgo, anHourAgo);
    }
  }

  /** Replaces a link, or creates it. */
  relink(name: string, target: string): void {
    symlinkSync(target, this.at('next'));
    renameSync(this.at('next'), this.at(name));
  }

  /** Changes the mode of a file, in a later tick of the clock of its file system than its last change. */
  changeMode(path: string): void {
    const ctime = (): bigint => statSync(path, { bigint: true }).ctimeNs;
    const before = ctime();
    while (ctime() === before) chmodSync(path, 0o640);
  }

  /** The changes since the last call: what is there, and the keys that were added (+), changed (~) and removed (-). */
  takeChanges(): { kind: string; files: Record<string, string>; keys: string }[] {
    return this.changes.splice(0).map(({ current, added, changed, removed }) => ({
      kind: current.kind,
      files: Object.fromEntries([...current.files].map(([key, { content }]) => [key, String(content)])),
      keys: [`+${added.join()}`, `~${changed.join()}`, `-${removed.join()}`].join(' '),
    }));
  }

  /** Creates the watcher and starts it. */
  abstract watch(target: string | readonly string[], options?: SceneOptions): Promise<void>;

  /** Nothing is reported, however long one waits. */
  abstract quiet(): Promise<void>;

  /** Resolves when that is so; in fake time also when it never will be. */
  abstract until(isSo: () => boolean): Promise<void>;

  /** The next report is this, and there is no other. */
  async reports(expected: string): Promise<void> {
    this.#expected += 1;
    await this.until(() => this.reported.length >= this.#expected);
    this.expectReported(expected);
  }

  reportsMissing(): Promise<void> {
    return this.reports(MISSING);
  }

  /** This is reported, whatever is reported before. */
  async comesTo(expected: string): Promise<void> {
    await this.until(() => this.reported.at(-1) === expected && this.reported.length > this.#expected);
    expect(this.reported.slice(this.#expected).at(-1)).toBe(expected);
    this.#expected = this.reported.length;
  }

  /** The next error, and the only one, is a `TargetError` with this code. */
  async fails(code: TargetError['code']): Promise<void> {
    this.#expectedErrors += 1;
    await this.until(() => this.errors.length >= this.#expectedErrors);
    expect(this.errors.slice(this.#expectedErrors - 1)).toMatchObject([{ name: 'TargetError', code }]);
  }

  /** A check is made and reports nothing. No time passes for it. */
  async unreported(): Promise<void> {
    await this.watcher.check();
    this.expectReported();
  }

  protected expectReported(...last: string[]): void {
    expect([...this.reported.slice(0, this.#expected - last.length), ...last]).toEqual(this.reported);
  }

  protected makeFragile(backend: WatchBackend): WatchBackend {
    this.#fragile = new FragileBackend(backend);
    return this.#fragile;
  }

  protected async open(target: string | readonly string[], options: ResilientWatcherOptions): Promise<void> {
    const watcher = this.create(target, options);
    this.record();
    await watcher.start();
  }

  /** Creates the watcher, without listeners, and does not start it. */
  create(target: string | readonly string[], options: ResilientWatcherOptions = {}): ResilientWatcher {
    const watcher = this.construct(target, options);
    this.#watcher = watcher;
    onTestFinished(() => watcher.close());
    return watcher;
  }

  protected construct(
    target: string | readonly string[],
    options: ResilientWatcherOptions,
  ): ResilientWatcher {
    return new ResilientWatcher(target, options);
  }

  /** Records what the watcher emits from now on. */
  record(): void {
    const { watcher, events } = this;
    watcher.on('change', (change) => {
      this.changes.push(change);
      this.reported.push(textOf(change.current));
      events.push(`change ${textOf(change.current)} by ${change.cause}`);
      this.noticed();
    });
    watcher.on('revision', ({ current }) => this.revisions.push(current));
    watcher.on('warning', ({ message }) => this.warnings.push(message));
    watcher.on('restart', ({ attempt, delayMs, error }) =>
      events.push(`restart ${attempt} after ${delayMs}: ${error.code}`),
    );
    watcher.on('degraded', ({ error }) =>
      events.push(`degraded: ${error.code} ${error.sysctl ?? ''}`.trim()),
    );
    watcher.on('recovered', ({ backend, degradedMs }) =>
      events.push(`recovered by ${backend} after ${degradedMs}`),
    );
    watcher.on('error', (error) => {
      events.push(`error: ${error.message}`);
      this.errors.push(error);
      this.noticed();
    });
    watcher.on('unreadable', ({ error }) => {
      events.push(`unreadable: ${error.message}`);
      this.errors.push(error);
      this.noticed();
    });
    watcher.on('readable', ({ unreadableMs }) => events.push(`readable after ${unreadableMs}`));
  }

  /** Something was reported. */
  protected noticed(): void {}
}
