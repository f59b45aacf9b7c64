/** Decides whether a file is complete, and whether a group is only partly retargeted. */
import { isSameInode } from '../fs/file-identity.js';
import { FileSnapshot } from '../fs/snapshot.js';
import type { KeyDifference } from './change.js';

/** Files by key. */
export type Files = ReadonlyMap<string, FileSnapshot>;

export const NO_FILES: Files = new Map();

/** The keys among these that `keep` accepts. */
export function filterKeys(
  { added, changed, removed }: KeyDifference,
  keep: (key: string) => boolean,
): KeyDifference {
  return { added: added.filter(keep), changed: changed.filter(keep), removed: removed.filter(keep) };
}

/**
 * Whether a file is complete, that is, whether its last write came before it was published.
 *
 * | the file                                                  | was published by                                      |
 * |-----------------------------------------------------------|-------------------------------------------------------|
 * | is in another revision of a volume than before            | the swap: nobody writes into a revision after it      |
 * | is older than the last link that leads to it, and was not | the process that retargeted that link                 |
 * | behind these links before                                 |                                                       |
 * | is a new file, older than the last change of its inode,   | a rename: `chmod` changes the inode, too, but not the |
 * | which came at the same time as a change of its directory  | directory                                             |
 *
 * Within one tick of the file system's clock (up to 10 ms), before and after cannot be distinguished. Neither can a
 * rename and a `chmod` if something else in the directory has changed since.
 *
 * @param before the file that was last reported under its key.
 */
export function isComplete(file: FileSnapshot, before: FileSnapshot | undefined): boolean {
  const { isSteady, isOlderThanLinks, isRenamed, links, inode } = FileSnapshot.stampOf(file);
  if (!isSteady) return false;
  if (file.revision !== undefined && file.revision !== before?.revision) return true;
  if (file.size === 0) return false;
  const known = before && FileSnapshot.stampOf(before);
  if (isOlderThanLinks && links !== known?.links) return true;
  return isRenamed && (!known || !isSameInode(inode, known.inode));
}

/** Whether some links of a group were retargeted and others were not: the others are probably about to be. */
export function isPartlyRetargeted(before: Files, after: Files): boolean {
  let isAnyKept = false;
  let isAnyRetargeted = false;
  for (const [key, file] of after) {
    const { links } = FileSnapshot.stampOf(file);
    const known = before.get(key);
    if (links === '' || !known) continue;
    if (FileSnapshot.stampOf(known).links === links) isAnyKept = true;
    else isAnyRetargeted = true;
  }
  return isAnyKept && isAnyRetargeted;
}

/** The volume that a file comes from: what it contains is reported together. */
export function volumeOf(file: FileSnapshot | undefined): string | undefined {
  return file && FileSnapshot.stampOf(file).volume;
}
