/** The parts of a difference, each of which has a quiet period of its own. */
import type { SeenFile } from '../../fs/observation.js';
import type { KeyDifference } from '../change.js';

type Files = ReadonlyMap<string, SeenFile>;

/** One name for a difference that is reported as a whole. */
const WHOLE = '';

const NO_DIFFERENCE: KeyDifference = { added: [], changed: [], removed: [] };

/** All of it as one part. */
export function asOnePart(difference: KeyDifference): ReadonlyMap<string, KeyDifference> {
  return new Map([[WHOLE, difference]]);
}

/** A part for each file, by its key. */
export function partForEachFile({
  added,
  changed,
  removed,
}: KeyDifference): ReadonlyMap<string, KeyDifference> {
  const parts = new Map<string, KeyDifference>();
  for (const key of added) parts.set(key, { ...NO_DIFFERENCE, added: [key] });
  for (const key of changed) parts.set(key, { ...NO_DIFFERENCE, changed: [key] });
  for (const key of removed) parts.set(key, { ...NO_DIFFERENCE, removed: [key] });
  return parts;
}

/** The difference in two: that of the keys for which it is so, and the rest. */
export function divided(
  { added, changed, removed }: KeyDifference,
  isSo: (key: string) => boolean,
): [part: KeyDifference, rest: KeyDifference] {
  const isNotSo = (key: string): boolean => !isSo(key);
  return [
    { added: added.filter(isSo), changed: changed.filter(isSo), removed: removed.filter(isSo) },
    { added: added.filter(isNotSo), changed: changed.filter(isNotSo), removed: removed.filter(isNotSo) },
  ];
}

/** Parts as one difference. */
export function together(parts: readonly KeyDifference[]): KeyDifference {
  return {
    added: parts.flatMap(({ added }) => added),
    changed: parts.flatMap(({ changed }) => changed),
    removed: parts.flatMap(({ removed }) => removed),
  };
}

/** The paths of the files that differ in these parts. */
export function pathsIn(files: Files, parts: readonly KeyDifference[]): ReadonlySet<string> {
  const keys = parts.flatMap(({ added, changed }) => [...added, ...changed]);
  return new Set(keys.flatMap((key) => files.get(key)?.snapshot.realPath ?? []));
}

/** Equal texts mean that the difference is still the same. */
export function appearanceOf(files: Files, { added, changed, removed }: KeyDifference): string {
  const differing = [...added, ...changed].map((key) => {
    const file = files.get(key);
    return [key, file?.signature, file?.snapshot.digest];
  });
  return JSON.stringify([differing, removed]);
}
