/**
 * Which of several calls a file gets its content from. Calls that name it differently, through a link in the path or at
 * its end, have different lanes (write-queue.ts), and a synchronous call waits for nobody. So each write that is about to
 * publish asks here, by the place where the file is.
 *
 * | a write is about to publish                           | then                                                      |
 * |-------------------------------------------------------|-----------------------------------------------------------|
 * | and another one is just doing that                    | it waits; a synchronous one puts the file aside whose     |
 * |                                                       | rename was requested, so that this can only fail          |
 * | and a later call has published                        | it is dropped                                             |
 * | and no later call has                                 | it publishes, and counts as the newest if that succeeds   |
 * | synchronously, and fails                              | what it put aside is put back, and its rename requested   |
 * |                                                       | again                                                     |
 */
import nodeFileSystem, { type BigIntStats } from 'node:fs';

import { untilAborted } from '../core/abort.js';
import type { FileSystem } from '../core/file-system.js';
import { Outcome } from '../core/outcome.js';
import { wait, type Steps } from '../core/steps.js';
import { isSame, type HeldDirectory } from './held-directory.js';
import { temporaryName } from './temporary-name.js';

/** The number of the last call. */
let last = 0;

/** The calls that have not ended, the oldest first. */
const running = new Set<number>();

/** By place, the newest call that has published while an older one was running. */
const newest = new Map<string, number>();

/** After so many places, the oldest are forgotten: a call that hangs for ever must not fill the memory. */
const MAX_PLACES = 10_000;

/** A write that is publishing. */
export interface Publication {
  /** The finished file, once its rename is requested. */
  file: string | Buffer | undefined;
  /** It was put aside, and back. */
  isBack: boolean;
  readonly ended: Promise<void>;
}

const publishing = new Map<string, Publication>();

/** A file that was put aside. */
interface Aside {
  readonly publication: Publication;
  readonly file: string | Buffer;
  readonly name: string;
}

/** One call, from when it was made. */
export class Call {
  readonly #number = (last += 1);

  constructor() {
    running.add(this.#number);
  }

  end(): void {
    running.delete(this.#number);
    if (running.size === 0) newest.clear();
  }

  /** Whether a later call has published there. */
  isOvertaken(place: Place): boolean {
    return place.keys.some((key) => (newest.get(key) ?? 0) > this.#number);
  }

  /** What is at the place comes from this call, or is what it wanted. */
  hasPublished({ keys }: Place): void {
    const [oldest = this.#number] = running;
    if (oldest >= this.#number) return;
    for (const key of keys) newest.set(key, Math.max(this.#number, newest.get(key) ?? 0));
    for (const key of newest.keys()) {
      if (newest.size <= MAX_PLACES) break;
      newest.delete(key);
    }
  }
}

/** By file system object, the tree that it shows: 0 is that of the kernel. */
const trees = new WeakMap<FileSystem, number>();
let lastTree = 0;

/** An object that adds something to `node:fs` shows the same files as `node:fs`, and one in memory has its own. */
function treeOf({ path, stat, access: { fs } }: HeldDirectory): number {
  const known = fs === nodeFileSystem ? 0 : trees.get(fs);
  if (known !== undefined) return known;
  const tree = isOfKernel(path, stat) ? 0 : (lastTree += 1);
  trees.set(fs, tree);
  return tree;
}

function isOfKernel(path: string, stat: BigIntStats): boolean {
  try {
    return isSame(nodeFileSystem.statSync(path, { bigint: true }), stat);
  } catch {
    return false;
  }
}

/** Where a file is: a name in an open directory. */
export class Place {
  /** Its path, and the identity of the directory. Some file systems have none that stays the same. */
  readonly keys: readonly string[];
  readonly #directory: HeldDirectory;

  constructor(path: string, directory: HeldDirectory, name: string) {
    const { dev, ino } = directory.stat;
    const tree = treeOf(directory);
    this.keys = [`${tree} ${path}`, `${tree} ${dev}:${ino}/${name}`];
    this.#directory = directory;
  }

  get #publication(): Publication | undefined {
    for (const key of this.keys) {
      const found = publishing.get(key);
      if (found) return found;
    }
    return undefined;
  }

  /** Does the work while no other asynchronous write publishes there. */
  *alone<T>(signal: AbortSignal | undefined, work: (publication: Publication) => Steps<T>): Steps<T> {
    for (let other = this.#publication; other; other = this.#publication) {
      yield* wait(untilAborted(other.ended, signal));
    }
    const outcome = new Outcome<void>();
    const publication: Publication = { file: undefined, isBack: false, ended: outcome.promise };
    for (const key of this.keys) publishing.set(key, publication);
    try {
      return yield* work(publication);
    } finally {
      for (const key of this.keys) publishing.delete(key);
      outcome.resolve();
    }
  }

  /** Puts the file aside whose rename was requested, if it was not carried out yet. */
  *putAside(): Steps<Aside | undefined> {
    const publication = this.#publication;
    if (publication?.file === undefined) return undefined;
    const aside = { publication, file: publication.file, name: temporaryName('file') };
    return (yield* this.#move(aside.file, this.#directory.at(aside.name))) ? aside : undefined;
  }

  *putBack({ publication, file, name }: Aside): Steps<void> {
    publication.isBack = yield* this.#move(this.#directory.at(name), file);
  }

  *#move(from: string | Buffer, to: string | Buffer): Steps<boolean> {
    try {
      yield* wait(this.#directory.calls.rename(from, to));
      return true;
    } catch {
      return false;
    }
  }
}
