/** Recognizes a volume without a revision by the entries of its directory. */
import { nextSlice, type Steps } from '../core/steps.js';
import { within } from './absolute-path.js';
import type { Disk } from './disk.js';
import type { Entry } from './listing.js';
import { DATA_LINK, isRevisionName, isUserVisible, KUBELET_PENDING_LINK } from './volume-layout.js';

export function isDataLink(entry: Entry): boolean {
  return entry.name === DATA_LINK && entry.isSymbolicLink();
}

/** Whether a directory is a volume without its `..data`, as in the gap of a swap. */
export function isVolumeInGap(entries: readonly Entry[]): boolean {
  if (entries.some(({ name }) => name === DATA_LINK)) return false;
  return entries.some(
    (entry) => entry.name === KUBELET_PENDING_LINK || (isRevisionName(entry.name) && entry.isDirectory()),
  );
}

/** Whether a directory is or was a volume: its keys lead to `..data`, or it has no file of its own. */
export function* looksLikeVolume(path: string, entries: readonly Entry[], disk: Disk): Steps<boolean> {
  if (entries.some(isDataLink)) return true;
  const shown = entries.filter(({ name }) => isUserVisible(name));
  if (isVolumeInGap(entries) && shown.every((entry) => entry.isDirectory())) return true;
  for (const entry of shown) {
    yield* nextSlice();
    const target = entry.isSymbolicLink() ? yield* disk.readlink(within(path, entry.name)) : undefined;
    if (target?.startsWith(`${DATA_LINK}/`)) return true;
  }
  return false;
}
