/** Whether a user may read everything that a target shows, and whether that is what a program was told. */
import { constants } from 'node:fs';

import type { Fs } from './actors/calls.js';
import { Violation, type World } from './world.js';

/** What is read of a target. */
export interface Needs {
  /** The directories above it. */
  readonly above: readonly string[];
  /** These are listed. */
  readonly directories: readonly string[];
  readonly files: readonly string[];
  /** These are listed only if something seems to have changed. */
  readonly perhaps?: readonly string[];
  /** If one of these cannot be read, it is told without its content. */
  readonly contents?: readonly string[];
}

interface Period {
  readonly from: number;
  to: number;
  /** Undefined: perhaps. */
  readonly isDenied: boolean | undefined;
}

/** An event of a watcher. */
export interface Told {
  readonly at: number;
  readonly name: string;
  /** Of `unreadable`, the path that its error names. */
  readonly path?: string | undefined;
}

/** Polls, the delays between attempts, and a turn or two, ms. */
const SLACK_MS = 2_500;

export class Readability {
  readonly #world: World;
  readonly #reader: Fs;
  readonly #periods: Period[] = [];
  #isInPart = false;
  /** Whether a directory could not be listened to. */
  isDeaf = false;
  /** Whether one cannot be listened to now. */
  isDeafNow = false;

  /** @param needs asked as root after each step of the world. */
  constructor(world: World, needs: (fs: Fs) => Needs) {
    this.#world = world;
    const root = world.machine.process();
    const reader = world.machine.process({ uid: world.library.uid });
    this.#reader = reader.fs;
    const note = (): void => {
      const needed = needs(root.fs);
      this.#note(isDenied(reader.fs, needed));
      this.isDeafNow = [...needed.above, ...needed.directories].some((path) =>
        fails(() => list(reader.fs, path)),
      );
      this.isDeaf ||= this.isDeafNow;
      this.#isInPart = needed.contents?.some((path) => fails(() => read(reader.fs, path))) === true;
    };
    note();
    world.afterStep.push(note);
  }

  /** 12: what is told last names what cannot be read now, not what could not be read before. */
  checkNamed(told: readonly Told[]): void {
    if (this.#periods.at(-1)?.isDenied !== true) return;
    const last = told.findLast(({ name }) => name === 'unreadable' || name === 'readable');
    if (last?.path === undefined || mayNot(this.#reader, last.path)) return;
    throw new Violation(12, `unreadable names ${last.path}, which can be read by now`);
  }

  /** Whether not all of it can be read now. */
  get isDenied(): boolean {
    return this.#isInPart || this.#periods.at(-1)?.isDenied !== false;
  }

  #note(isDenied: boolean | undefined): void {
    const { now } = this.#world;
    const last = this.#periods.at(-1);
    if (last?.isDenied === isDenied) return;
    if (last) last.to = now;
    this.#periods.push({ from: now, to: Infinity, isDenied });
  }

  /**
   * 6: `unreadable` is told with a cause. 12: what is wrong with a path is told, by a resync at the latest; that it is over
   * is told at once, unless a directory above it cannot be listened to.
   * @param since when the program began to watch, or, of a tree, was first told: what it could never read is left out.
   * @param graceMs how long it may last before it is told.
   * @param resyncMs 0: there is none.
   */
  check(told: readonly Told[], since: number, graceMs: number, resyncMs: number, isTree = false): void {
    const withResync = graceMs + SLACK_MS + (resyncMs === 0 ? Infinity : resyncMs);
    const events = told.filter(({ name }) => name === 'unreadable' || name === 'readable');
    for (const { at, name } of events) {
      // Of a tree, a part that could not be read before is left out.
      if (isTree && name === 'readable') continue;
      const isCaused = this.#periods.some(
        ({ isDenied, from, to }) => isDenied !== (name === 'readable') && from <= at && to >= at - withResync,
      );
      if (!isCaused) throw new Violation(6, `${name} at ${at} without a cause`);
    }
    for (const { isDenied, from, to } of this.#periods) {
      const end = Math.min(to, this.#world.now);
      if (isDenied === undefined) continue;
      const patience = isDenied || this.isDeaf ? withResync : graceMs + SLACK_MS;
      if (end - Math.max(from, since) < patience || (isTree && from < since)) continue;
      const last = events.findLast(({ at }) => at < to)?.name;
      if ((last === 'unreadable') === isDenied) continue;
      const what = isDenied ? 'unreadable' : 'readable';
      throw new Violation(
        12,
        `from ${from} to ${end} it is ${what}, but the last that was told is "${last ?? ''}"`,
      );
    }
  }
}

/** Whether a user may not look up, list or read what is at a path. */
function mayNot(fs: Fs, path: string): boolean {
  const find = (): unknown => fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (fails(find)) return true;
  return fs.inodeAt(path)?.kind === 'directory' ? fails(() => list(fs, path)) : fails(() => read(fs, path));
}

function isDenied(fs: Fs, { directories, files, perhaps = [], contents = [] }: Needs): boolean | undefined {
  const isCertain =
    directories.some((path) => fails(() => list(fs, path))) ||
    files.some((path) => fails(() => read(fs, path))) ||
    contents.some((path) => fails(() => fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })));
  return isCertain || (perhaps.some((path) => fails(() => list(fs, path))) ? undefined : false);
}

const list = (fs: Fs, path: string): unknown => fs.readdirSync(path, { withFileTypes: true });

const read = (fs: Fs, path: string): void => fs.closeSync(fs.openSync(path, constants.O_RDONLY));

function fails(call: () => unknown): boolean {
  try {
    call();
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES';
  }
}
