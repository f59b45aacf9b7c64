import { errnoOf, hasMoved, isExhausted } from '../../core/errno.js';
import { readSeenFile } from '../file-reading.js';
import { keysThatDiffer, PersistentMap } from '../persistent-map.js';
import type { ReadLimits, SeenFile } from '../observation.js';
import { FileSnapshot, type FileState } from '../snapshot.js';
import type { Effects } from '../effects.js';
import type { TreeFile } from '../tree-walk.js';
import { limitReading, type Limited } from './read-limits.js';

/** How the files of a tree are read. */
export interface TreeReading extends ReadLimits {
  /** Whether files are read; if not, they are compared by inode and timestamps. */
  readonly content: boolean;
}

/** What was read of the files of a walk. After the next walk only what differs is read again. */
export class TreeFiles {
  readonly #path: string;
  readonly #reading: TreeReading;
  #walked = PersistentMap.empty<TreeFile>();
  #seen = PersistentMap.empty<SeenFile>();
  #states = PersistentMap.empty<FileState>();
  /** Those that changed while they were read. */
  readonly #unsteady = new Set<string>();
  #limited: Limited = { kept: 'identities', limited: undefined };
  #version = 0;

  /** @param path of the tree, as it is watched. */
  constructor(path: string, reading: TreeReading) {
    this.#path = path;
    this.#reading = reading;
  }

  get seen(): ReadonlyMap<string, SeenFile> {
    return this.#seen;
  }

  get states(): ReadonlyMap<string, FileState> {
    return this.#states;
  }

  /** See `Found.limited`. */
  get limited(): string | undefined {
    return this.#limited.limited;
  }

  /** Equal versions: the same files with equal signatures. */
  get version(): number {
    return this.#version;
  }

  /**
   * Takes in the files of a walk.
   * @param again files to be read again although their signatures are the same: two writes within one tick of the
   * file system's clock leave a signature unchanged.
   * @returns the files that did not stand still, and those that differ from the walk before.
   */
  *take(files: PersistentMap<TreeFile>, again: Iterable<string>): Effects<readonly TreeFile[]> {
    const isFirst = this.#version === 0;
    const different = new Set(keysThatDiffer(this.#walked, files));
    const made = new Map<string, SeenFile | undefined>();
    const restless: TreeFile[] = [];
    for (const key of this.#toMake(files, different, again)) {
      const file = files.get(key);
      const seen = file && (yield* this.#make(key, file));
      made.set(key, seen);
      const isSteady = seen?.steady !== false;
      if (isSteady) this.#unsteady.delete(key);
      else this.#unsteady.add(key);
      if (file && (!isSteady || (different.has(key) && !isFirst))) restless.push(file);
    }
    this.#walked = files;
    this.#seen = this.#seen.with(made);
    this.#states = this.#states.with(new Map([...made].map(([key, seen]) => [key, seen?.snapshot])));
    if (different.size > 0) this.#version += 1;
    return restless;
  }

  #toMake(
    files: PersistentMap<TreeFile>,
    different: ReadonlySet<string>,
    again: Iterable<string>,
  ): Iterable<string> {
    if (!this.#reading.content) return different;
    const { kept } = this.#limited;
    if (different.size > 0) {
      this.#limited = limitReading(
        [...files.values()].map(({ size }) => size),
        this.#reading,
      );
    }
    // Removed files are among the different ones.
    if (kept !== this.#limited.kept) return new Set([...different, ...files.keys()]);
    return new Set([...different, ...this.#unsteady, ...again]);
  }

  *#make(key: string, file: TreeFile): Effects<SeenFile> {
    const { kept } = this.#limited;
    const { maxContentBytes } = this.#reading;
    return kept !== 'identities' && file.size <= maxContentBytes
      ? yield* this.#read(key, file, kept === 'digests')
      : this.#unread(key, file);
  }

  /**
   * Reads a file. One that has disappeared again counts as not read: its removal causes a hint. One that cannot be
   * read keeps its content if its signature is unchanged; otherwise it is compared by inode and timestamps. Running
   * out of descriptors says nothing about the file.
   */
  *#read(key: string, file: TreeFile, digestOnly: boolean): Effects<SeenFile> {
    const { maxContentBytes } = this.#reading;
    const { path: realPath, links } = file;
    try {
      const place = { path: `${this.#path}/${key}`, realPath, revision: undefined, links };
      const seen = yield* readSeenFile({ ...place, maxContentBytes, digestOnly });
      if (seen) return { ...seen, steady: seen.steady && seen.signature === file.signature };
    } catch (error) {
      if (errnoOf(error) === undefined || isExhausted(error)) throw error;
      const known = this.#seen.get(key);
      if (!hasMoved(error)) return known?.signature === file.signature ? known : this.#unread(key, file);
    }
    return { ...this.#unread(key, file), steady: false };
  }

  #unread(key: string, file: TreeFile): SeenFile {
    const { path: realPath, links, signature, inode, statDigest, finished, size, mode } = file;
    const path = `${this.#path}/${key}`;
    const snapshot = new FileSnapshot({
      path,
      realPath,
      revision: undefined,
      content: undefined,
      givenDigest: statDigest,
      size,
      mode,
    });
    return { snapshot, signature, inode, finished, steady: true, links };
  }
}
