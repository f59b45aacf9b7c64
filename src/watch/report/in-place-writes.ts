/**
 * Which files were written in place, as far as the backend reports that. That no write of a file was reported means
 * that it was renamed into place only if its directory has been watched since before the previous observation, which
 * did not find the file as it is now.
 *
 * | the directory of the file                           | a write was reported | none was reported                   |
 * |-----------------------------------------------------|----------------------|-------------------------------------|
 * | watched since before the observation before this one | written              | not written                         |
 * | watched for less time, or not at all                 | written              | unknown, until the file is reported |
 *
 * An observation takes time. What is reported during it is about what the next one will find.
 */
import { dirname } from 'node:path';

import type { WatchedDirectory } from '../../core/watch-backend.js';

const NOTHING_OPENED: ReadonlySet<string> = new Set();

/** The writes in place that one watcher knows of. */
export class InPlaceWrites {
  /** The observation during which each was reported, by path. */
  readonly #reported = new Map<string, number>();
  /** The files of which nothing is known, by path. */
  readonly #unknown = new Set<string>();
  #directories: readonly WatchedDirectory[] = [];
  #watched: ReadonlySet<string> = new Set();
  /** The directories that are watched only since the last observation, or since it began. */
  readonly #opened = new Set<string>();
  #observations = 0;
  /** The directories in which every write was reported for this observation. */
  #covered: { readonly watched: ReadonlySet<string>; readonly except: ReadonlySet<string> } | undefined;

  /** A write of the file at this path was reported. */
  reported(path: string): void {
    this.#reported.set(path, this.#observations);
  }

  /** These directories are watched from now on; those in `opened` were not watched before. */
  directoriesSet(directories: readonly WatchedDirectory[], opened: readonly string[]): void {
    if (directories !== this.#directories) this.#watched = new Set(directories.map(({ path }) => path));
    this.#directories = directories;
    for (const path of opened) this.#opened.add(path);
  }

  /** @param areReported whether there is a backend that reports writes. */
  beginObservation(areReported: boolean): void {
    this.#observations += 1;
    const except = this.#opened.size === 0 ? NOTHING_OPENED : new Set(this.#opened);
    this.#covered = areReported ? { watched: this.#watched, except } : undefined;
  }

  /** Whether the file, which differs in this observation, was written in place; undefined: unknown. */
  isWritten(path: string): boolean | undefined {
    if (!this.#covered) return undefined;
    if (this.#reported.has(path)) return true;
    const directory = dirname(path);
    if (!this.#covered.watched.has(directory) || this.#covered.except.has(directory)) this.#unknown.add(path);
    return this.#unknown.has(path) ? undefined : false;
  }

  /** Forgets what this observation has handled, except for the files that are pending. */
  endObservation(pendingPaths: ReadonlySet<string>): void {
    for (const path of this.#covered?.except ?? []) this.#opened.delete(path);
    for (const [path, observation] of this.#reported) {
      if (observation < this.#observations && !pendingPaths.has(path)) this.#reported.delete(path);
    }
    for (const path of this.#unknown) if (!pendingPaths.has(path)) this.#unknown.delete(path);
  }
}
