/**
 * The disk, in four calls. They return `undefined` if nothing is there; every other failure is an error with a `code`.
 *
 * | the path is               | a call                                                                            |
 * |---------------------------|-----------------------------------------------------------------------------------|
 * | on a local file system    | is made at once, unless another look of the same event has made it                |
 * | where a call may hang     | is awaited, after all others on the same mount; fails with ESTALE if the mount is |
 * |                           | replaced in the meantime (mounts.ts). What is not there is asked for again        |
 * | a directory with          | is listed in the same way, because that takes a thread of Node.js's pool as long  |
 * | thousands of entries      | as it would take the event loop                                                   |
 */
import type { BigIntStats, Dirent } from 'node:fs';

import type { Clock } from '../core/ports/clock.js';
import { errnoOf, withErrno } from '../core/errors/errno.js';
import { run, wait, type Answer, type Steps } from '../core/scheduling/steps.js';
import { onNextTurn } from '../core/scheduling/event-loop.js';
import {
  list,
  lookupsOf,
  lstat,
  readContents,
  readlink,
  type Lookups,
  type Reading,
  type ReadingCalls,
} from './calls.js';
import type { Mounts } from './mounts.js';

/** Both forms of the calls of a file system. */
interface Forms {
  readonly now: Lookups;
  readonly soon: Lookups;
}

const forms = new WeakMap<ReadingCalls, Forms>();

function formsOf(fs: ReadingCalls): Forms {
  let known = forms.get(fs);
  if (!known) forms.set(fs, (known = { now: lookupsOf(fs, true), soon: lookupsOf(fs, false) }));
  return known;
}

/** Answers of the disk by path. */
export interface Answers {
  readonly lstat: Map<string, BigIntStats>;
  readonly readlink: Map<string, string>;
  readonly list: Map<string, readonly Dirent[]>;
}

/** By event and file system. */
const shared = new Map<object, Map<ReadingCalls, Answers>>();

/**
 * Answers that the looks of one event share: a thousand watchers resolve their common path once. Each new event, tick and
 * call of a user begins without answers.
 * @param event any object that stands for the event. It counts for one turn of the event loop, so that a backend that gives
 * the same object for every event hides no change.
 */
export function answersOf(event: object, fs: ReadingCalls): Answers {
  let known = shared.get(event);
  if (!known) {
    shared.set(event, (known = new Map<ReadingCalls, Answers>()));
    onNextTurn(() => shared.delete(event));
  }
  let answers = known.get(fs);
  if (!answers) known.set(fs, (answers = noAnswers()));
  return answers;
}

export function noAnswers(): Answers {
  return { lstat: new Map(), readlink: new Map(), list: new Map() };
}

/** The disk as one look sees it. */
export class Disk {
  /** What looks of the same event share; undefined if they share nothing. */
  readonly shared: Answers | undefined;
  readonly clock: Clock;
  readonly #fs: ReadingCalls;
  readonly #mounts: Mounts;
  readonly #forms: Forms;

  /** @param answers shared with the other looks of one event; undefined if there are none. */
  constructor(fs: ReadingCalls, mounts: Mounts, clock: Clock, answers: Answers | undefined) {
    this.#fs = fs;
    this.#mounts = mounts;
    this.#forms = formsOf(fs);
    this.shared = answers;
    this.clock = clock;
  }

  /** The same disk without the answers so far: for a proof, and after something has moved. */
  get afresh(): Disk {
    return new Disk(this.#fs, this.#mounts, this.clock, noAnswers());
  }

  lstat(path: string): Steps<BigIntStats | undefined> {
    return this.#ask(this.shared?.lstat, lstat, path);
  }

  /** The target of a link; undefined also if something else is there. */
  readlink(path: string): Steps<string | undefined> {
    return this.#ask(this.shared?.readlink, linkAt, path);
  }

  /** The entries of a directory with their kinds, in any order. */
  list(path: string, stat: Pick<BigIntStats, 'dev' | 'size'>): Steps<readonly Dirent[] | undefined> {
    this.entered(path, stat);
    const isLarge = stat.size > LARGE_DIRECTORY_BYTES;
    return this.#ask(this.shared?.list, listed, path, 0, undefined, isLarge || this.#mounts.mayHang(path));
  }

  /** A directory was found. @param path every link resolved. */
  entered(path: string, { dev }: Pick<BigIntStats, 'dev'>): void {
    this.#mounts.found(dev, path);
  }

  /** Reads a file, which must not be a link. @param found the file at the path, if known. */
  read(path: string, maxBytes: number, found?: BigIntStats): Steps<Reading | undefined> {
    return this.#ask(undefined, contents, path, maxBytes, found);
  }

  /**
   * Makes a call unless another look of the same event has made it.
   * @param known the answers so far.
   * @param maxBytes for `read`, like `found`.
   * @param mayTakeLong so that it is awaited.
   */
  #ask<T>(
    known: Map<string, T> | undefined,
    call: Lookup<T>,
    path: string,
    maxBytes = 0,
    found?: BigIntStats,
    mayTakeLong = this.#mounts.mayHang(path),
  ): Steps<T | undefined> {
    const value = known?.get(path);
    if (value !== undefined) return wait(value);
    if (mayTakeLong) return this.#wait(known, path, () => call(this.#forms.soon, path, maxBytes, found));
    try {
      const answer = call(this.#forms.now, path, maxBytes, found) as T | undefined;
      if (answer !== undefined) known?.set(path, answer);
      return wait(answer);
    } catch (error) {
      if (!isAbsent(error)) throw error;
      return wait(undefined);
    }
  }

  *#wait<T>(
    known: Map<string, T> | undefined,
    path: string,
    call: () => Answer<T | undefined>,
  ): Steps<T | undefined> {
    for (let asked = 1; asked <= MAX_ASKED; asked += 1) {
      try {
        // Run by itself, so that it closes its descriptor even if nobody waits for it any longer.
        const answer = (yield this.#mounts.inTurn(path, async () => call())) as T;
        if (answer === undefined) continue;
        known?.set(path, answer);
        return answer;
      } catch (error) {
        if (!isAbsent(error)) throw error;
      }
    }
    return undefined;
  }
}

/**
 * How often a file system in user space must answer that nothing is there. It is asked for the name and then for the
 * file, so the answer is the same for a file that is replaced between these two requests.
 */
const MAX_ASKED = 6;

/** Some 5,000 short names: listing these takes the event loop 3 ms. */
const LARGE_DIRECTORY_BYTES = 102_400n;

const linkAt: Lookup<string> = (calls, path) => run(readlink(calls, path));
const listed: Lookup<readonly Dirent[]> = (calls, path) => run(list(calls, path));
const contents: Lookup<Reading> = (calls, path, maxBytes, found) =>
  run(readContents(calls, path, maxBytes, found));

/** One of the four calls. */
type Lookup<T> = (
  calls: Lookups,
  path: string,
  maxBytes: number,
  found?: BigIntStats,
) => Answer<T | undefined>;

function isAbsent(error: unknown): boolean {
  return ABSENT.includes(errnoOf(withErrno(error)) ?? '');
}

/** EINVAL: `readlink` of something that is not a link. Not ESTALE: the file may still be there. */
const ABSENT = ['ENOENT', 'ENOTDIR', 'ELOOP', 'EINVAL'];
