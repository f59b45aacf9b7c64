/**
 * What the backend has told of writes in place, and where it would have told. That nothing was told of a file means
 * that nobody wrote it (it was renamed into place) only if its directory has been watched since before the last check
 * that did not find it so.
 *
 * | the directory of the file                     | a write was told | none was told                      |
 * |-----------------------------------------------|------------------|------------------------------------|
 * | watched since before the check before this one | written          | not written                        |
 * | watched for less, or not at all               | written          | unknown, until the file is reported |
 *
 * A look takes time. What is told while it is under way is about what the next one will find.
 */
import { basename, dirname } from 'node:path';

import type { WatchedDirectory } from '../core/watch-backend.js';

/** The writes of one watcher. */
export class Writes {
  /** By path, or by name where no path was told: during which look. */
  readonly #told = new Map<string, number>();
  /** Files of which nothing can be said, by path. */
  readonly #unknown = new Set<string>();
  #directories: readonly WatchedDirectory[] = [];
  #watched: ReadonlySet<string> = new Set();
  /** Those that were opened since, or while, the last check was taken. */
  readonly #opened = new Set<string>();
  #checks = 0;
  /** Where this check can rely on being told. */
  #covered: { readonly watched: ReadonlySet<string>; readonly but: ReadonlySet<string> } | undefined;

  /** Takes in that this entry was written. */
  tell(name: string, path = name): void {
    this.#told.set(path, this.#checks);
  }

  /** Takes in that these are watched from now on, and which of them were not before. */
  directoriesSet(directories: readonly WatchedDirectory[], opened: readonly string[]): void {
    if (directories !== this.#directories) this.#watched = new Set(directories.map(({ path }) => path));
    this.#directories = directories;
    for (const path of opened) this.#opened.add(path);
  }

  /**
   * A look begins.
   * @param areTold whether there is a backend that tells of writes.
   */
  begin(areTold: boolean): void {
    this.#checks += 1;
    this.#covered = areTold ? { watched: this.#watched, but: new Set(this.#opened) } : undefined;
  }

  /** Whether the file that this check has found to differ was written in place; undefined: nobody knows. */
  areOf(path: string): boolean | undefined {
    if (!this.#covered) return undefined;
    if (this.#told.has(path) || this.#told.has(basename(path))) return true;
    const directory = dirname(path);
    if (!this.#covered.watched.has(directory) || this.#covered.but.has(directory)) this.#unknown.add(path);
    return this.#unknown.has(path) ? undefined : false;
  }

  /** The look has ended. Forgets what it has dealt with, all that it knew, but of these files, which are still pendingPaths. */
  forgetBut(pendingPaths: ReadonlySet<string>): void {
    for (const path of this.#covered?.but ?? []) this.#opened.delete(path);
    const names = new Set([...pendingPaths].map((path) => basename(path)));
    for (const [path, look] of this.#told) {
      if (look < this.#checks && !pendingPaths.has(path) && !names.has(path)) this.#told.delete(path);
    }
    for (const path of this.#unknown) if (!pendingPaths.has(path)) this.#unknown.delete(path);
  }
}
