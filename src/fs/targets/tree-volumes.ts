/**
 * The volumes in a tree, read one after another.
 *
 * | a volume                     | then                                           |
 * |------------------------------|------------------------------------------------|
 * | has a revision               | is read, and its keys become files of the tree |
 * | is replaced while it is read | is read again                                  |
 * | is in the gap of a swap      | has no files until the next look               |
 * | cannot be read               | keeps its files                                |
 * | is no longer a volume        | is listed again as a directory                 |
 */
import { errnoOf, hasMoved, isExhausted } from '../../core/errno.js';
import type { Disk } from '../disk.js';
import type { Look } from '../look.js';
import { MAX_ATTEMPTS, type Moved } from '../observation.js';
import { readingError } from '../target-error.js';
import { childOf } from '../tree-key.js';
import type { TreeDirectory, TreeLookOptions } from './tree-nodes.js';
import { publishedIn, type VolumeReading } from './volume.js';

interface OpenVolume {
  readonly key: string;
  readonly look: Look<VolumeReading | Moved>;
}

/** The volumes that a look still has to read. */
export class TreeVolumes {
  readonly #look: TreeLookOptions;
  readonly #keys = new Set<string>();
  #attempts = 0;
  #reading: OpenVolume | undefined;

  constructor(look: TreeLookOptions) {
    this.#look = look;
  }

  add(key: string): void {
    this.#keys.add(key);
  }

  get areRead(): boolean {
    return this.#keys.size === 0 && !this.#reading;
  }

  /** Takes the next step. Returns a directory that is no longer a volume. */
  next(disk: Disk): TreeDirectory | undefined {
    const [first = ''] = this.#keys;
    const key = this.#reading?.key ?? first;
    try {
      if (!this.#reading) return this.#open(key, disk);
      this.#read(this.#reading, disk);
    } catch (error) {
      if (errnoOf(error) === undefined || isExhausted(error)) throw error;
      this.#keys.delete(key);
      this.#reading = undefined;
      const path = (error as NodeJS.ErrnoException).path ?? this.#look.options.path;
      if (hasMoved(error) && !this.#isLastAttempt()) this.add(key);
      else this.#look.nodes.setUnreadable(key, readingError(path, error));
    }
    return undefined;
  }

  #open(key: string, disk: Disk): TreeDirectory | undefined {
    const { nodes, root, extent, now } = this.#look;
    const directory = nodes.directories.get(key);
    const stat = directory && disk.lstat(directory.path);
    const published = stat && publishedIn(directory.path, stat, root.route, disk);
    this.#keys.delete(key);
    if (!directory?.volume || !published) return this.#isLastAttempt() ? undefined : directory;
    if (published.kind === 'revision') {
      this.#reading = { key, look: directory.volume.look(published, extent, now) };
      return undefined;
    }
    if (published.kind === 'unreadable') {
      nodes.setUnreadable(key, published.error);
      return undefined;
    }
    nodes.setReadable(key);
    for (const name of directory.names) nodes.remove(childOf(key, name));
    directory.names.clear();
    return undefined;
  }

  #read({ key, look }: OpenVolume, disk: Disk): undefined {
    const found = look.next(disk);
    if (!found) return;
    this.#reading = undefined;
    if (found.kind === 'moved') {
      if (!this.#isLastAttempt()) this.add(key);
      return;
    }
    const { nodes, scope } = this.#look;
    nodes.setReadable(key);
    const names = nodes.directories.get(key)?.names;
    for (const name of names ?? []) if (!found.files.has(name)) nodes.remove(childOf(key, name));
    names?.clear();
    for (const [name, file] of found.files) {
      const child = childOf(key, name);
      if (scope.leavesOut(child) || !scope.includes(child)) continue;
      nodes.setFile(child, file);
      names?.add(name);
    }
  }

  #isLastAttempt(): boolean {
    this.#attempts += 1;
    return this.#attempts > MAX_ATTEMPTS;
  }
}
