/**
 * Lists a directory. On some file systems (btrfs, some in user space) a listing leaves out an entry that is renamed over
 * while it is made, although there is such an entry at every instant.
 *
 * | the directory         | is listed                                                                                  |
 * |-----------------------|--------------------------------------------------------------------------------------------|
 * | was not listed before | twice, and again as long as something changes there meanwhile, at most `MAX_LISTINGS`      |
 * |                       | times; what any of these listings shows counts as an entry                                 |
 * | was listed before     | once; the entries that it then had and that the listing does not show are looked up        |
 */
import type { Dirent } from 'node:fs';

import { nextSlice, type Steps } from '../core/scheduling/steps.js';
import { within } from './absolute-path.js';
import type { Disk } from './disk.js';

/** An entry of a directory. */
export type Entry = Pick<Dirent, 'name' | 'isFile' | 'isDirectory' | 'isSymbolicLink'>;

/** Somebody may change the directory all the time. */
const MAX_LISTINGS = 10;

/**
 * The entries of a directory; undefined if there is none. Some of them may be gone by now.
 * @param before the entries that it had when it was last listed.
 */
export function entriesOf(
  path: string,
  before: Iterable<string> | undefined,
  disk: Disk,
): Steps<readonly Entry[] | undefined> {
  return before ? listAgain(path, before, disk) : listAtFirst(path, disk);
}

function* listAtFirst(path: string, disk: Disk): Steps<readonly Entry[] | undefined> {
  const entries = new Map<string, Entry>();
  let changedNs: bigint | undefined;
  for (let count = 1; count <= MAX_LISTINGS; count += 1) {
    const [known, knownNs] = [entries.size, changedNs];
    const listed = yield* (count === 1 ? disk : disk.afresh).list(path);
    if (!listed) return undefined;
    for (const entry of listed) entries.set(entry.name, entry);
    changedNs = (yield* disk.afresh.lstat(path))?.mtimeNs;
    if (count > 1 && entries.size === known && changedNs === knownNs) break;
    yield* nextSlice();
  }
  return [...entries.values()];
}

function* listAgain(path: string, before: Iterable<string>, disk: Disk): Steps<readonly Entry[] | undefined> {
  const listed = yield* disk.list(path);
  if (!listed) return undefined;
  const names = new Set(listed.map(({ name }) => name));
  const others: Entry[] = [];
  for (const name of before) {
    if (names.has(name)) continue;
    yield* nextSlice();
    const stat = yield* disk.afresh.lstat(within(path, name));
    if (stat) others.push(Object.assign(stat, { name }));
  }
  return others.length === 0 ? listed : [...listed, ...others];
}
