/**
 * Which files were written in place, as far as the backend reports that. That no write of a file was reported means
 * that none has returned, and only if its directory has been watched since before the previous observation, which did not
 * find the file as it is now.
 *
 * | the directory of the file                           | a write was reported | none was reported                   |
 * |-----------------------------------------------------|----------------------|-------------------------------------|
 * | watched since before the observation before this one | written              | not written                         |
 * | watched for less time, or not at all                 | written              | unknown, until the file is reported |
 *
 * The first write may not have returned: with O_SYNC it takes milliseconds, and its bytes can be read meanwhile. But who
 * creates a file in the place of another one removes that first, which is an event, too. So a file whose name was
 * mentioned once was renamed over the other one.
 *
 * An observation takes time. What is reported during it is about what the next one will find.
 */
import { dirname } from 'node:path';

import type { WatchedDirectory } from '../../core/watch-backend.js';

const NO_DIRECTORIES: readonly WatchedDirectory[] = [];

/** The writes in place that one watcher knows of. */
export class InPlaceWrites {
  /** The observation during which each was reported, by path. */
  #reported: Map<string, number> | undefined;
  /** The files of which nothing is known, by path. */
  #unknown: Set<string> | undefined;
  #directories = NO_DIRECTORIES;
  /** The directories that are watched only since the last observation, or since it began. */
  #opened: Set<string> | undefined;
  #observations = 0;
  /** The directories that were watched when this observation began; undefined: no writes are reported. */
  #watched: readonly WatchedDirectory[] | undefined;
  /** Their paths, made when somebody asks. */
  #paths: ReadonlySet<string> | undefined;
  /** Those of them that were not watched before. */
  #except: ReadonlySet<string> | undefined;

  /** How often each entry has come or gone. */
  #moves: Map<string, { times: number; observation: number }> | undefined;

  /** A write of the file at this path was reported. */
  reported(path: string): void {
    this.#reported ??= new Map();
    this.#reported.set(path, this.#observations);
  }

  /** It was reported that something at this path has come or gone. */
  moved(path: string, times = 1): void {
    this.#moves ??= new Map();
    const before = this.#moves.get(path)?.times ?? 0;
    this.#moves.set(path, { times: before + times, observation: this.#observations });
  }

  /** This observation did not find the file at this path: its name is free. */
  gone(path: string): void {
    if (this.#watched) this.moved(path, 2);
  }

  /** Whether the file that was known at this path was replaced by rename, if it was replaced. */
  isRenamed(path: string): boolean {
    return this.#moves?.get(path)?.times === 1;
  }

  /** These directories are watched from now on; those in `opened` were not watched before. */
  directoriesSet(directories: readonly WatchedDirectory[], opened: readonly string[]): void {
    this.#directories = directories;
    if (opened.length > 0) this.#opened = new Set([...(this.#opened ?? []), ...opened]);
  }

  /** @param areReported whether there is a backend that reports writes. */
  beginObservation(areReported: boolean): void {
    this.#observations += 1;
    this.#watched = areReported ? this.#directories : undefined;
    this.#paths = undefined;
    this.#except = this.#opened;
  }

  /** Whether the file, which differs in this observation, was written in place; undefined: unknown. */
  isWritten(path: string): boolean | undefined {
    if (!this.#watched) return undefined;
    if (this.#reported?.has(path)) return true;
    if (!this.#isCovered(dirname(path), this.#watched)) (this.#unknown ??= new Set()).add(path);
    return this.#unknown?.has(path) ? undefined : false;
  }

  /** Forgets what this observation has handled, except for the files that are pending. */
  endObservation(pendingPaths: ReadonlySet<string>): void {
    if (this.#opened === this.#except) this.#opened = undefined;
    else for (const path of this.#except ?? []) this.#opened?.delete(path);
    // Until the next one begins, nothing is known of writes.
    this.#paths = this.#except = this.#watched = undefined;
    for (const [path, observation] of this.#reported ?? []) {
      if (observation < this.#observations && !pendingPaths.has(path)) this.#reported?.delete(path);
    }
    if (this.#reported?.size === 0) this.#reported = undefined;
    for (const [path, { observation }] of this.#moves ?? []) {
      if (observation < this.#observations && !pendingPaths.has(path)) this.#moves?.delete(path);
    }
    if (this.#moves?.size === 0) this.#moves = undefined;
    for (const path of this.#unknown ?? []) if (!pendingPaths.has(path)) this.#unknown?.delete(path);
    if (this.#unknown?.size === 0) this.#unknown = undefined;
  }

  /** Whether every write in the directory was reported for this observation. */
  #isCovered(directory: string, watched: readonly WatchedDirectory[]): boolean {
    this.#paths ??= new Set(watched.map(({ path }) => path));
    return this.#paths.has(directory) && this.#except?.has(directory) !== true;
  }
}
