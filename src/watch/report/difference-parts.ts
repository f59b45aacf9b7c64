/** The parts of a difference, each of which has a quiet period of its own. */
import { FileSnapshot } from '../../fs/snapshot.js';
import type { SeenFile } from '../../fs/observation.js';
import type { KeyDifference } from '../change.js';

type Files = ReadonlyMap<string, SeenFile>;

/** The number of files that are compared, or considered, within two or three milliseconds. */
export const PORTION = 1_000;

/** One name for a difference that is reported as a whole. */
const WHOLE = '';

const NO_KEYS: readonly string[] = Object.freeze([]);

export const NO_DIFFERENCE: KeyDifference = { added: NO_KEYS, changed: NO_KEYS, removed: NO_KEYS };

/** All of it as one part. */
export function asOnePart(difference: KeyDifference): Iterable<[name: string, part: KeyDifference]> {
  return [[WHOLE, difference]];
}

/** A part for each file, by its key. */
export function* partForEachFile({
  added,
  changed,
  removed,
}: KeyDifference): Iterable<[name: string, part: KeyDifference]> {
  for (const key of added) yield [key, { ...NO_DIFFERENCE, added: [key] }];
  for (const key of changed) yield [key, { ...NO_DIFFERENCE, changed: [key] }];
  for (const key of removed) yield [key, { ...NO_DIFFERENCE, removed: [key] }];
}

/** The difference, with all files that are the same: what is in the place of something else may still be written. */
export function withAll(files: Files, { added, removed }: KeyDifference): KeyDifference {
  const isAdded = new Set(added);
  return { added, removed, changed: [...files.keys()].filter((key) => !isAdded.has(key)) };
}

/** Splits a difference: the keys that `isSo` accepts, and the rest. */
export function divided(
  { added, changed, removed }: KeyDifference,
  isSo: (key: string) => boolean,
): [part: KeyDifference, rest: KeyDifference] {
  const [addedPart, addedRest] = partition(added, isSo);
  const [changedPart, changedRest] = partition(changed, isSo);
  const [removedPart, removedRest] = partition(removed, isSo);
  return [
    { added: addedPart, changed: changedPart, removed: removedPart },
    { added: addedRest, changed: changedRest, removed: removedRest },
  ];
}

function partition(
  keys: readonly string[],
  isSo: (key: string) => boolean,
): [part: string[], rest: string[]] {
  const parts: [string[], string[]] = [[], []];
  for (const key of keys) parts[isSo(key) ? 0 : 1].push(key);
  return parts;
}

/** The paths of the files that differ. */
export function pathsIn(files: Files, { added, changed }: KeyDifference): ReadonlySet<string> {
  const paths = new Set<string>();
  for (const keys of [added, changed]) {
    for (const key of keys) {
      const path = files.get(key)?.snapshot.realPath;
      if (path !== undefined) paths.add(path);
    }
  }
  return paths;
}

/** Whether two files have the same contents. Digests are computed only where they are needed. */
export function haveSameContent({ snapshot: one }: SeenFile, { snapshot: other }: SeenFile): boolean {
  const bytes = FileSnapshot.bytesOf(one);
  const others = FileSnapshot.bytesOf(other);
  return bytes && others ? bytes.equals(others) : one.digest === other.digest;
}
