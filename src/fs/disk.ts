/**
 * The disk, in four calls. They return `undefined` if nothing is there; every other failure is an error with a `code`.
 *
 * | the path is                         | a call                                                              |
 * |-------------------------------------|---------------------------------------------------------------------|
 * | on a local file system              | is made at once, unless another look of the same event has made it  |
 * | where calls may hang, not asked yet | throws `Unanswered`: look.ts awaits the answer and repeats the step |
 * | where calls may hang, already asked | returns the answer                                                  |
 */
import type { BigIntStats, Dirent } from 'node:fs';

import { errnoOf, withErrno } from '../core/errno.js';
import { Answers, type KnownAnswers } from './answers.js';
import {
  listNow,
  listSoon,
  lstatNow,
  lstatSoon,
  readlinkNow,
  readlinkSoon,
  readNow,
  readSoon,
  type Reading,
  type ReadingCalls,
} from './calls.js';
import type { Mounts } from './mounts.js';

/** Thrown for a call that may hang and has no answer yet. */
export class Unanswered extends Error {
  /** Makes the call, and keeps the answer for the step. Never rejects; may never resolve. */
  readonly ask: () => Promise<void>;

  constructor(ask: () => Promise<void>) {
    super('This step waits for an answer');
    this.ask = ask;
  }
}

type Answer = { readonly value: unknown } | { readonly error: unknown };

/** The disk as one look sees it. */
export class Disk {
  readonly #fs: ReadingCalls;
  readonly #mounts: Mounts;
  readonly #shared: KnownAnswers | undefined;
  /** The answers that the current step had to wait for. */
  #answered: Map<string, Answer> | undefined;

  /** @param answers shared with the other looks of one event; undefined if there are none. */
  constructor(
    fs: ReadingCalls,
    mounts: Mounts,
    answers: Answers | undefined,
    answered?: Map<string, Answer>,
  ) {
    this.#fs = fs;
    this.#mounts = mounts;
    this.#shared = answers?.of(fs);
    this.#answered = answered;
  }

  /** The same disk without answers: for a proof, and after something has moved. */
  get afresh(): Disk {
    this.#answered ??= new Map();
    return new Disk(this.#fs, this.#mounts, new Answers(), this.#answered);
  }

  /** A step has ended; the next one makes its own calls. */
  forget(): void {
    this.#answered?.clear();
  }

  lstat(path: string): BigIntStats | undefined {
    return this.#once('lstat', path, lstatNow, lstatSoon);
  }

  /** The target of a link; undefined also if something else is there. */
  readlink(path: string): string | undefined {
    return this.#once('readlink', path, readlinkNow, readlinkSoon);
  }

  /** The entries of a directory with their kinds, in any order. */
  list(path: string): readonly Dirent[] | undefined {
    return this.#once('list', path, listNow, listSoon);
  }

  /** Reads a file, which must not be a link. @param found the file at the path, if known. */
  read(path: string, maxBytes: number, found?: BigIntStats): Reading | undefined {
    try {
      return this.#mounts.mayHang(path)
        ? this.#ask('read', path, (fs) => readSoon(fs, path, maxBytes, found))
        : readNow(this.#fs, path, maxBytes, found);
    } catch (error) {
      assertAbsent(error);
      return undefined;
    }
  }

  /** Makes a call unless another look of the same event has made it. */
  #once<T>(
    name: keyof KnownAnswers,
    path: string,
    now: (fs: ReadingCalls, path: string) => T | undefined,
    soon: (fs: ReadingCalls, path: string) => Promise<T>,
  ): T | undefined {
    const known = this.#shared?.[name] as Map<string, T> | undefined;
    let value = known?.get(path);
    if (value !== undefined) return value;
    try {
      value = this.#mounts.mayHang(path)
        ? this.#ask(name, path, (fs) => soon(fs, path))
        : now(this.#fs, path);
    } catch (error) {
      assertAbsent(error);
    }
    if (value !== undefined) known?.set(path, value);
    return value;
  }

  #ask<T>(name: string, path: string, call: (fs: ReadingCalls) => Promise<T>): T | undefined {
    const key = `${name} ${path}`;
    this.#answered ??= new Map();
    const answer = this.#answered.get(key);
    if (!answer) throw new Unanswered(() => this.#answer(key, path, call));
    if ('error' in answer) throw answer.error;
    return answer.value as T;
  }

  async #answer(key: string, path: string, call: (fs: ReadingCalls) => Promise<unknown>): Promise<void> {
    try {
      const value = await this.#mounts.inTurn(path, () => call(this.#fs));
      this.#answered?.set(key, { value });
    } catch (error) {
      this.#answered?.set(key, { error });
    }
  }
}

/** EINVAL: `readlink` of something that is not a link. Not ESTALE: the file may still be there. */
const ABSENT = ['ENOENT', 'ENOTDIR', 'ELOOP', 'EINVAL'];

/** Rethrows an error unless it says that nothing, or something else, is at the path. */
function assertAbsent(error: unknown): void {
  if (!ABSENT.includes(errnoOf(withErrno(error)) ?? '')) throw error;
}
