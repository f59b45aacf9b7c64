/**
 * Lists a directory. On some file systems (btrfs, some in user space) a listing leaves out an entry that is renamed over
 * while it is made, although there is such an entry at every instant.
 *
 * | the directory         | is listed                                                                                  |
 * |-----------------------|--------------------------------------------------------------------------------------------|
 * | was not listed before | twice, and again as long as something changes there meanwhile, at most `MAX_LISTINGS`      |
 * |                       | times; what any of these listings shows counts as an entry                                 |
 * | was listed before     | once; the entries that it then had and that the listing does not show are looked up        |
 *
 * A lookup may fold names (APFS, NTFS, what Docker Desktop shares): there an entry that was renamed from `A` to `a` is
 * still found as `A`, but the listing shows only `a`.
 */
import type { BigIntStats, Dirent } from 'node:fs';

import { errnoOf } from '../core/errors/errno.js';
import { nextSlice, slices, type Steps } from '../core/scheduling/steps.js';
import { within } from './absolute-path.js';
import type { Disk } from './disk.js';
import { isSameInode } from './file-identity.js';
import { isUserVisible } from './volume-layout.js';

/** An entry of a directory. */
export type Entry = Pick<Dirent, 'name' | 'isFile' | 'isDirectory' | 'isSymbolicLink'>;

/** A directory that changes all the time is not listed more often. */
const MAX_LISTINGS = 10;

/**
 * The entries of a directory; undefined if there is none. Some of them may be gone by now.
 * @param before the entries that it had when it was last listed.
 * @param directory its stat.
 */
export function entriesOf(
  path: string,
  before: Iterable<string> | undefined,
  directory: BigIntStats,
  disk: Disk,
): Steps<readonly Entry[] | undefined> {
  return before ? listAgain(path, before, directory, disk) : listAtFirst(path, directory, disk);
}

function* listAtFirst(path: string, directory: BigIntStats, disk: Disk): Steps<readonly Entry[] | undefined> {
  const entries = new Map<string, Entry>();
  let listed: readonly Entry[] | undefined;
  let changedNs: bigint | undefined;
  const slice = slices();
  for (let count = 1; count <= MAX_LISTINGS; count += 1) {
    const [known, knownNs] = [entries.size, changedNs];
    listed = yield* (count === 1 ? disk : disk.afresh).list(path, directory);
    if (!listed) return undefined;
    for (const entry of listed) {
      yield* slice();
      entries.set(entry.name, entry);
    }
    changedNs = (yield* disk.afresh.lstat(path))?.mtimeNs;
    if (count > 1 && entries.size === known && changedNs === knownNs) break;
    yield* nextSlice();
  }
  if (listed?.length === entries.size) return listed;
  for (const { name } of listed ?? []) {
    yield* slice();
    entries.delete(name);
  }
  return yield* withUnlisted(path, listed ?? [], [...entries.values()], disk);
}

function* listAgain(
  path: string,
  before: Iterable<string>,
  directory: BigIntStats,
  disk: Disk,
): Steps<readonly Entry[] | undefined> {
  const listed = yield* disk.list(path, directory);
  if (!listed) return undefined;
  const names = yield* namesOf(listed);
  const others: Entry[] = [];
  const slice = slices();
  for (const name of before) {
    yield* slice();
    if (names.has(name)) continue;
    const stat = yield* lookedUp(within(path, name), disk);
    if (stat) others.push(Object.assign(stat, { name }));
  }
  return others.length === 0 ? listed : yield* withUnlisted(path, listed, others, disk);
}

/** An entry that a listing left out. One whose path is too long to be looked up is gone, as the listing says. */
function* lookedUp(path: string, disk: Disk): Steps<BigIntStats | undefined> {
  try {
    return yield* disk.afresh.lstat(path);
  } catch (error) {
    if (errnoOf(error) === 'ENAMETOOLONG') return undefined;
    throw error;
  }
}

/** The names of entries, in slices. */
export function* namesOf(entries: readonly Entry[]): Steps<Set<string>> {
  const names = new Set<string>();
  const slice = slices();
  for (const { name } of entries) {
    yield* slice();
    names.add(name);
  }
  return names;
}

/** Entries by what `isUserVisible` says of them, in slices. */
export function* byVisibility(
  entries: readonly Entry[],
): Steps<{ readonly visible: readonly Entry[]; readonly hidden: readonly Entry[] }> {
  const [visible, hidden]: [Entry[], Entry[]] = [[], []];
  const slice = slices();
  for (const entry of entries) {
    yield* slice();
    (isUserVisible(entry.name) ? visible : hidden).push(entry);
  }
  return { visible, hidden };
}

/** With these entries, unless the listing shows them in another spelling: a lookup may fold names, a listing never does. */
function* withUnlisted(
  path: string,
  listed: readonly Entry[],
  others: readonly Entry[],
  disk: Disk,
): Steps<readonly Entry[]> {
  const spellings = new Map<string, string>();
  const slice = slices();
  for (const { name } of listed) {
    yield* slice();
    spellings.set(folded(name), name);
  }
  const all = [...listed];
  for (const other of others) {
    const spelling = spellings.get(folded(other.name));
    const stat = spelling === undefined ? undefined : yield* disk.afresh.lstat(within(path, other.name));
    const shown = spelling === undefined ? undefined : yield* disk.afresh.lstat(within(path, spelling));
    if (!stat || !shown || !isSameInode(stat, shown)) all.push(other);
  }
  return all;
}

/** As file systems compare names that ignore case, or how a letter is composed. */
function folded(name: string): string {
  return name.normalize().toUpperCase();
}

/** Whether an entry is also found by another spelling of its name: then only a listing shows the one that it has. */
export function* isFolded(directory: string, name: string, entry: BigIntStats, disk: Disk): Steps<boolean> {
  const lower = name.toLowerCase();
  const composed = name.normalize();
  const others = [
    lower === name ? name.toUpperCase() : lower,
    composed === name ? name.normalize('NFD') : composed,
  ];
  for (const other of others) {
    const found = other === name ? undefined : yield* disk.lstat(within(directory, other));
    if (found && isSameInode(found, entry)) return true;
  }
  return false;
}
