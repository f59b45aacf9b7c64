/**
 * The files of a directory or tree by key, in order. It never changes, and shares what has not changed with the one that it
 * was made of: one file among 100,000 costs a copy of some hundred references, and as little to find.
 */
import { nodeUtil } from '../core/ports/builtins.js';
import { slices, type Steps } from '../core/scheduling/steps.js';
import type { FileSnapshot, Files } from './snapshot.js';

/** Successive keys with their files. */
interface Chunk {
  readonly keys: string[];
  readonly files: FileSnapshot[];
}

const MAX_KEYS = 128;

/** Smaller neighbors become one chunk. */
const MIN_KEYS = 64;

const CHUNKS = Symbol('chunks');

export class FileMap implements ReadonlyMap<string, FileSnapshot> {
  static readonly empty = new FileMap([], 0);
  readonly size: number;
  /** Not private, so that `isDeepStrictEqual` compares it, nor a string, so that `JSON.stringify` does not write it. */
  readonly [CHUNKS]: readonly Chunk[];

  private constructor(chunks: readonly Chunk[], size: number) {
    this[CHUNKS] = chunks;
    this.size = size;
  }

  /** The same files. */
  static *of(files: Files): Steps<FileMap> {
    return files instanceof FileMap ? files : yield* FileMap.empty.with(files);
  }

  readonly [Symbol.toStringTag] = 'Map';

  get(key: string): FileSnapshot | undefined {
    const chunk = this[CHUNKS][placeOf(this[CHUNKS], key)];
    if (!chunk) return undefined;
    const at = indexOf(chunk.keys, key);
    return chunk.keys[at] === key ? chunk.files[at] : undefined;
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  *keys(): MapIterator<string> {
    for (const { keys } of this[CHUNKS]) yield* keys;
  }

  *values(): MapIterator<FileSnapshot> {
    for (const { files } of this[CHUNKS]) yield* files;
  }

  *entries(): MapIterator<[string, FileSnapshot]> {
    for (const { keys, files } of this[CHUNKS])
      for (const [at, file] of files.entries()) yield [keys[at] ?? '', file];
  }

  [Symbol.iterator](): MapIterator<[string, FileSnapshot]> {
    return this.entries();
  }

  forEach(
    callback: (file: FileSnapshot, key: string, map: ReadonlyMap<string, FileSnapshot>) => void,
    thisArg?: unknown,
  ): void {
    for (const [key, file] of this) callback.call(thisArg, file, key, this);
  }

  [nodeUtil.inspect.custom](): ReadonlyMap<string, FileSnapshot> {
    return new Map(this);
  }

  /** With these files under their keys; undefined: without the key. The same object if that changes nothing. */
  *with(changes: Iterable<readonly [key: string, file: FileSnapshot | undefined]>): Steps<FileMap> {
    const chunks = [...this[CHUNKS]];
    const own = new Set<Chunk>();
    let { size } = this;
    const slice = slices();
    for (const [key, file] of changes) {
      yield* slice();
      const place = placeOf(chunks, key);
      let chunk = chunks[place] ?? { keys: [], files: [] };
      const at = indexOf(chunk.keys, key);
      const isThere = chunk.keys[at] === key;
      if (isThere ? chunk.files[at] === file : !file) continue;
      if (!own.has(chunk)) {
        chunk = { keys: chunk.keys.slice(), files: chunk.files.slice() };
        own.add(chunk);
        chunks[place] = chunk;
      }
      if (file && isThere) {
        chunk.files[at] = file;
        continue;
      }
      if (file) {
        chunk.keys.splice(at, 0, key);
        chunk.files.splice(at, 0, file);
        size += 1;
      } else {
        chunk.keys.splice(at, 1);
        chunk.files.splice(at, 1);
        size -= 1;
      }
      fit(chunks, place, own);
    }
    return own.size === 0 ? this : new FileMap(chunks, size);
  }

  /** The keys with another file, or with none in one of the two. What they share is skipped. */
  static *differing(before: FileMap, after: FileMap): Iterable<Differing<FileSnapshot, FileSnapshot>> {
    const [one, other] = [before[CHUNKS], after[CHUNKS]];
    for (let [at, to, from, place] = [0, 0, 0, 0]; ;) {
      while (from === 0 && place === 0 && at < one.length && one[at] === other[to]) {
        at += 1;
        to += 1;
      }
      const [known, now] = [one[at], other[to]];
      const [key, next] = [known?.keys[from], now?.keys[place]];
      if (key === undefined && next === undefined) return;
      const isKnown = key !== undefined && (next === undefined || key <= next);
      const isNow = next !== undefined && (key === undefined || next <= key);
      const [file, current] = [
        isKnown ? known?.files[from] : undefined,
        isNow ? now?.files[place] : undefined,
      ];
      if (file !== current) yield [(isKnown ? key : next) ?? '', file, current];
      if (isKnown && (from += 1) === known?.keys.length) [at, from] = [at + 1, 0];
      if (isNow && (place += 1) === now?.keys.length) [to, place] = [to + 1, 0];
    }
  }
}

/** A key, and what two maps have under it. */
export type Differing<Before, After> = readonly [
  key: string,
  before: Before | undefined,
  after: After | undefined,
];

/** The keys under which two maps do not have the same object. */
export function* differing<Before, After>(
  before: ReadonlyMap<string, Before>,
  after: ReadonlyMap<string, After>,
): Iterable<Differing<Before, After>> {
  if (before === (after as unknown)) return;
  if (before instanceof FileMap && after instanceof FileMap) {
    yield* FileMap.differing(before, after) as Iterable<Differing<Before, After>>;
    return;
  }
  let kept = 0;
  for (const [key, now] of after) {
    const known = before.get(key);
    if (known !== undefined) kept += 1;
    if (known !== (now as unknown)) yield [key, known, now];
  }
  if (kept === before.size) return;
  for (const [key, known] of before) if (!after.has(key)) yield [key, known, undefined];
}

/** A chunk that has become too large is divided, and one that has become small takes in the next one. */
function fit(chunks: Chunk[], place: number, own: Set<Chunk>): void {
  const [chunk, next] = chunks.slice(place, place + 2);
  if (!chunk) return;
  if (chunk.keys.length > MAX_KEYS) {
    const half = { keys: chunk.keys.splice(MAX_KEYS / 2), files: chunk.files.splice(MAX_KEYS / 2) };
    own.add(half);
    chunks.splice(place + 1, 0, half);
  } else if (next && chunk.keys.length + next.keys.length <= MIN_KEYS) {
    chunk.keys.push(...next.keys);
    chunk.files.push(...next.files);
    chunks.splice(place + 1, 1);
  } else if (chunk.keys.length === 0) chunks.splice(place, 1);
}

/** The chunk that a key belongs to: the last one that begins with it or before it. */
function placeOf(chunks: readonly Chunk[], key: string): number {
  let [low, high] = [0, chunks.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((chunks[middle]?.keys[0] ?? '') <= key) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Where a key is, or belongs. */
function indexOf(keys: readonly string[], key: string): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((keys[middle] ?? '') < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
