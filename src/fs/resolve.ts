/**
 * Resolves a path, and records each entry that was consulted: what is at the path depends on these entries, and on
 * nothing else in their directories.
 *
 * | an entry on the path                   | then                                                                     |
 * |----------------------------------------|--------------------------------------------------------------------------|
 * | is a directory                         | entered                                                                  |
 * | is a link                              | followed, at most `MAX_LINKS` of them                                    |
 * | is a magic link (magic-link.ts)        | entered by the kernel, if it leads to a directory; otherwise unreadable  |
 * | does not exist                         | the path is missing, until it is made, or a volume there is swapped      |
 * | may not be looked up                   | passed: `node --permission`, Deno and AppArmor may allow a volume but    |
 * |                                        | not the directories above it. If no entry below may be looked up either, |
 * |                                        | or the entry is in a volume, the path is unreadable                      |
 * | is in a revision, the target of a link | entered, but not listened to: a revision does not change                 |
 * | named `..data`                         |                                                                          |
 * | is a revision                          | entered; listened to unless its name begins with two dots, because such  |
 * |                                        | names count as one (watch/listeners.ts)                                  |
 */
import type { BigIntStats } from 'node:fs';

import { basename, BETWEEN_NAMES, dirname } from '../core/ports/platform-path.js';
import { errnoOf, isDenied } from '../core/errors/errno.js';
import { MAX_LINKS } from '../core/ports/file-system.js';
import type { Steps } from '../core/scheduling/steps.js';
import { within } from './absolute-path.js';
import type { Disk } from './disk.js';
import { identityOf } from './file-identity.js';
import { linkKind, parentOf } from './magic-link.js';
import type { Consulted, ConsultedDirectory } from './consulted.js';
import { readingError, targetError, wrongPath, type TargetError } from './target-error.js';
import { DATA_LINK, isEntryName, isUserVisible } from './volume-layout.js';

/** Where a path leads, and the entries that were consulted to find out. */
export type Resolution = { readonly route: Route } & (
  | {
      readonly kind: 'found';
      /** Every link resolved. */
      readonly path: string;
      readonly stat: BigIntStats;
    }
  | {
      readonly kind: 'missing';
      /** The first entry on the path that does not exist. */
      readonly path: string;
      /** Whether a link leads there, which is probably being retargeted. */
      readonly isGap: boolean;
      /** The volume in which the entry is a key that is published, but has no link yet. */
      readonly unlinkedIn: string | undefined;
      /** When the directory of the missing entry last changed, ns; 0 if unknown. */
      readonly changedNs: bigint;
    }
  | { readonly kind: 'unreadable'; readonly error: TargetError }
);

/** The links that lead to a place. */
export interface Way {
  /** The links that were followed, see `withLink`, as one string: equal if no link was replaced. */
  readonly links: string;
  /** The newest `ctime` of these links, ns: when the last of them was retargeted. */
  readonly retargetedNs: bigint;
  /** The device of that link, whose clock it was. After a link on another device, only the later ones count. */
  readonly retargetedOn: bigint | undefined;
  /** The target of the last `..data` link. */
  readonly revision: string | undefined;
  /** The directory of that link, if the revision is an entry of it, as kubelet makes it. */
  readonly volume: string | undefined;
  /** The path of that entry. */
  readonly revisionPath: string | undefined;
}

const NO_WAY: Way = {
  links: '',
  retargetedNs: 0n,
  retargetedOn: undefined,
  revision: undefined,
  volume: undefined,
  revisionPath: undefined,
};

/** Where the directory of a path leads. */
export interface Reached {
  readonly route: Route;
  /** Every link resolved. */
  readonly place: string;
  readonly stat: BigIntStats;
}

/** By path, of the looks that share their answers. */
const reachedDirectories = new WeakMap<object, Map<string, Reached>>();

function reachedBy({ shared }: Disk): Map<string, Reached> | undefined {
  if (!shared) return undefined;
  const known = reachedDirectories.get(shared) ?? new Map<string, Reached>();
  reachedDirectories.set(shared, known);
  return known;
}

interface Directory extends ConsultedDirectory {
  entries: readonly string[];
  isAncestor: boolean;
}

/** Why a link of /proc is not followed: a file behind it cannot be replaced, and so cannot be published. */
const NOT_FOLLOWED =
  'it is a link of /proc to an open file or another object, not to a directory; use the path of the file';

/** What was consulted while a path was resolved. */
export class Route implements Consulted {
  directories: readonly Directory[] = [];
  /** The links that were followed. */
  way = NO_WAY;
  /** The number of these links. */
  hops = 0;

  copy(): Route {
    const directories = this.directories.map((directory) => ({ ...directory }));
    return Object.assign(new Route(), this, { directories });
  }

  /**
   * An entry was looked up in a directory.
   * @param isAncestor whether the entry is only an ancestor.
   */
  consulted(above: string, directory: BigIntStats, name: string, isAncestor: boolean): void {
    // A revision does not change; its name may.
    if (isInRevision(this.way, isUserVisible(name) ? above : `${above}/${name}`)) return;
    const path = above || '/';
    const known = this.directories.find((each) => each.path === path);
    if (known) {
      // "concat", because "push" would reserve room for sixteen more entries in every watcher.
      if (!known.entries.includes(name)) known.entries = known.entries.concat(name);
      known.isAncestor &&= isAncestor;
      return;
    }
    this.directories = this.directories.concat({
      path,
      identity: identityOf(directory),
      entries: [name],
      isAncestor,
    });
  }
}

/** The way through one more link. @param path of the link, every link above it resolved. */
export function withLink(way: Way, path: string, target: string, stat: BigIntStats): Way {
  // With its identity, because it may come back with the same target.
  const link = [path, target, identityOf(stat)].join('\0');
  const links = way.links === '' ? link : `${way.links}\0${link}`;
  const name = basename(path);
  const isNewer = stat.dev !== way.retargetedOn || stat.ctimeNs > way.retargetedNs;
  const retargetedNs = isNewer ? stat.ctimeNs : way.retargetedNs;
  const retargetedOn = stat.dev;
  if (name !== DATA_LINK) return { ...way, links, retargetedNs, retargetedOn };
  const isEntry = isEntryName(target);
  const volume = isEntry ? withoutParents(dirname(path)) : undefined;
  const revisionPath = isEntry ? path.slice(0, -name.length) + target : undefined;
  return { links, retargetedNs, retargetedOn, revision: target, volume, revisionPath };
}

/** After a directory that may not be looked up, `..` stays in a path. The dot behind a link of `/proc` is in all paths there. */
function withoutParents(path: string): string {
  if (!path.includes('/..')) return path;
  const names: string[] = [];
  for (const name of path.split('/')) {
    if (name === '..') names.pop();
    else names.push(name);
  }
  return names.join('/');
}

/** The links of one way, and those that are followed after them. */
export function joinWays(one: Way, other: Way): Way {
  if (other.links === '') return one;
  const isLater = other.retargetedOn !== one.retargetedOn || other.retargetedNs > one.retargetedNs;
  const { retargetedNs, retargetedOn } = isLater ? other : one;
  const links = one.links === '' ? other.links : `${one.links}\0${other.links}`;
  return { ...(other.revision === undefined ? one : other), links, retargetedNs, retargetedOn };
}

/** Whether a path is that of the revision that a way leads through, or is in it. */
export function isInRevision({ revisionPath: root }: Way, path: string): boolean {
  if (root === undefined || !path.startsWith(root)) return false;
  return path.length === root.length || path[root.length] === '/';
}

/**
 * Resolves an absolute path. Looks of one event resolve the directory of their paths once. Throws only errors without a
 * `code`.
 */
export function* resolve(path: string, disk: Disk): Steps<Resolution> {
  const parent = path.slice(0, path.lastIndexOf('/'));
  const known = reachedBy(disk);
  const reached = known?.get(parent);
  const route = reached?.route.copy() ?? new Route();
  /** The names that are still to be looked up, in reverse order. */
  const names = (reached ? path.slice(parent.length + 1) : path).split(BETWEEN_NAMES).reverse();
  let isInParent = reached !== undefined;
  let place = reached?.place ?? '';
  let above = '';
  let stat = reached?.stat;
  /** The directory of the entry at `place`. */
  let directory: BigIntStats | undefined;
  let denied: TargetError | undefined;
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    if (names.length === 0 && !isInParent) {
      isInParent = true;
      if (stat && !denied) known?.set(parent, { route: route.copy(), place, stat });
    }
    if (name === '' || name === '.') continue;
    if (stat && !stat.isDirectory())
      return unreadable(wrongPath(place, 'a path component is not a directory'), route);
    above = place;
    directory = name === '..' ? undefined : stat;
    // What may not be looked up may be a link.
    const isKnown = above === '' || stat !== undefined;
    place = name === '..' && isKnown ? parentOf(above) : `${above}/${name}`;
    try {
      stat = yield* disk.lstat(place || '/');
      // Nobody can rename the root, and a directory in it reports its own changes.
      if (above === '' && name !== '..' && !stat?.isDirectory()) directory = yield* disk.lstat('/');
      const entered = stat?.isDirectory() ? stat : undefined;
      if (entered && entered.dev !== directory?.dev) disk.entered(place, entered);
      if (directory) route.consulted(above, directory, name, entered !== undefined);
      let target = stat?.isSymbolicLink() ? yield* disk.readlink(place) : undefined;
      if (target === undefined && stat?.isSymbolicLink()) {
        // It was replaced.
        stat = yield* disk.afresh.lstat(place);
        target = stat?.isSymbolicLink() ? yield* disk.afresh.readlink(place) : undefined;
      }
      if (!stat || (target === undefined && stat.isSymbolicLink()))
        return yield* missing(place, directory, route, denied?.path, disk);
      denied = undefined;
      if (target === undefined) continue;
      if (route.hops === MAX_LINKS) {
        return unreadable(wrongPath(place, 'the chain of links is a loop, or longer than 40 links'), route);
      }
      route.way = withLink(route.way, place, target, stat);
      route.hops += 1;
      if (linkKind(name, stat) === 'magic') {
        const link = place;
        place = `${link}/.`;
        stat = yield* disk.lstat(place);
        if (stat) continue;
        if ((yield* disk.afresh.readlink(link)) === undefined)
          return yield* missing(link, directory, route, undefined, disk);
        return unreadable(wrongPath(link, NOT_FOLLOWED), route);
      }
      names.push(...target.split(BETWEEN_NAMES).reverse());
      const isAbsolute = target.startsWith('/');
      place = isAbsolute ? '' : above;
      stat = isAbsolute ? undefined : directory;
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      if (!isDenied(error)) return unreadable(readingError(place || '/', error), route);
      if (directory) route.consulted(above, directory, name, true);
      denied ??= targetError('ERR_TARGET_ACCESS', place || '/', error);
      // An entry of a volume is a link.
      if (directory && (yield* exists(within(above, DATA_LINK), disk))) return unreadable(denied, route);
      stat = undefined;
    }
  }
  if (place === '') stat = yield* disk.lstat('/');
  if (!stat)
    return denied ? unreadable(denied, route) : yield* missing(place, directory, route, undefined, disk);
  return { kind: 'found', path: place || '/', stat, route };
}

/** The links that were followed. @param links see `Way`. */
export function* linksIn(links: string): Iterable<{ path: string; target: string; identity: string }> {
  const parts = links === '' ? [] : links.split('\0');
  for (let at = 0; at < parts.length; at += 3)
    yield { path: parts[at] ?? '', target: parts[at + 1] ?? '', identity: parts[at + 2] ?? '' };
}

/** Whether one of these links has been replaced. @param links see `Way`. */
export function* wereRetargeted(links: string, disk: Disk): Steps<boolean> {
  for (const { path, target, identity } of linksIn(links)) {
    const stat = yield* disk.lstat(path);
    if (!stat || identityOf(stat) !== identity || (yield* disk.readlink(path)) !== target) return true;
  }
  return false;
}

/** @param passed the entry above that may not be looked up, if there is one: what it is a key of is not known. */
function* missing(
  path: string,
  directory: BigIntStats | undefined,
  route: Route,
  passed: string | undefined,
  disk: Disk,
): Steps<Resolution> {
  const volume = dirname(path);
  const isKey = yield* isPublished(path, disk);
  // A swap may publish it.
  if (directory) route.consulted(volume, directory, DATA_LINK, false);
  const unlinkedIn = isKey ? withoutParents(volume) : passed && dirname(passed);
  const isGap = isKey || route.hops > 0 || !isUserVisible(basename(path));
  return { kind: 'missing', path, isGap, unlinkedIn, changedNs: directory?.mtimeNs ?? 0n, route };
}

/** Whether a volume has published a key with this path, whose link may be missing. */
export const isPublished = (path: string, disk: Disk): Steps<boolean> =>
  exists(within(dirname(path), `${DATA_LINK}/${basename(path)}`), disk);

/** Whether there is an entry at this path; also if that cannot be looked up. */
function* exists(path: string, disk: Disk): Steps<boolean> {
  try {
    return (yield* disk.lstat(path)) !== undefined;
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return true;
  }
}

function unreadable(error: TargetError, route: Route): Resolution {
  return { kind: 'unreadable', error, route };
}
