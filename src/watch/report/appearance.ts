/** What a difference looks like from check to check: its quiet period begins again when that changes. */
import type { SeenFile, StableObservation } from '../../fs/observation.js';
import type { KeyDifference } from '../change.js';
import { haveSameContent } from './difference-parts.js';

/** The keys that differ and their files, undefined for a removed one; or why there are no files. */
export type Appearance = string | ReadonlyMap<string, SeenFile | undefined>;

export function appearanceOf(seen: StableObservation, part: KeyDifference): Appearance {
  switch (seen.kind) {
    case 'found':
      return filesThatDiffer(seen.files, part);
    case 'missing':
      return seen.kind;
    case 'unreadable':
      return `${seen.error.code} ${seen.error.path}`;
  }
}

function filesThatDiffer(
  files: ReadonlyMap<string, SeenFile>,
  { added, changed, removed }: KeyDifference,
): Appearance {
  const appearance = new Map<string, SeenFile | undefined>();
  for (const key of added) appearance.set(key, files.get(key));
  for (const key of changed) appearance.set(key, files.get(key));
  for (const key of removed) appearance.set(key, undefined);
  return appearance;
}

export function isSameAppearance(one: Appearance, other: Appearance): boolean {
  if (one === other || typeof one === 'string' || typeof other === 'string') return one === other;
  if (one.size !== other.size) return false;
  for (const [key, file] of one) if (!other.has(key) || !isSameFile(file, other.get(key))) return false;
  return true;
}

function isSameFile(one: SeenFile | undefined, other: SeenFile | undefined): boolean {
  if (!one || !other) return one === other;
  return one === other || (one.signature === other.signature && haveSameContent(one, other));
}
