/**
 * A group of files as one target: their contents come from one instant.
 *
 * | the members                           | the group is                                            |
 * |---------------------------------------|---------------------------------------------------------|
 * | all of them are missing               | missing                                                 |
 * | some are missing                      | the others                                              |
 * | some are directories                  | the others, and partly unreadable; refused at the start |
 * | one is a device, or cannot be read    | unreadable                                              |
 * | a link was retargeted during the read | read again                                              |
 * | are more, or larger, than the limits  | compared by digests, or by inode and timestamps         |
 */
import { told } from '../../core/ports/platform-path.js';
import { errnoOf, hasMoved } from '../../core/errors/errno.js';
import { nextSlice, run, type Steps } from '../../core/scheduling/steps.js';
import { attempts, MOVED, type Moved } from '../attempts.js';
import { consultedBy, haveSameDirectories, type Consulted } from '../consulted.js';
import { Disk, noAnswers } from '../disk.js';
import { absoluteGivenPath } from '../absolute-path.js';
import { Mounts } from '../mounts.js';
import type { Found, Extent, Observation, Regrouped, Target } from '../observation.js';
import { ReadTotals, type Kept, type ReadLimits } from '../read-limits.js';
import { isPublished, resolve, wereRetargeted, type Resolution } from '../resolve.js';
import type { ReadingPorts } from '../stable-read.js';
import { SetSnapshot, type FileSnapshot } from '../snapshot.js';
import { readingError, TargetError, wrongPath } from '../target-error.js';
import { fileAt } from './file.js';

/** The absolute paths, by the keys that they are reported under. */
type Members = ReadonlyMap<string, string>;

/** A member as it was read. */
interface Member {
  readonly key: string;
  readonly resolution: Resolution;
  /** Undefined if it is missing, or a directory. */
  readonly file: FileSnapshot | undefined;
}

/**
 * Nothing in a directory would ever be reported by a group, so a watcher does not start with one. One that appears later
 * is `unreadable`, because the other members are watched already.
 * @throws {TargetError} (rejects) `ERR_TARGET_DIRECTORY`.
 */
export async function refuseDirectories(target: Target, { fs, clock }: ReadingPorts): Promise<void> {
  if (!(target instanceof GroupTarget)) return;
  const mounts = Mounts.of(fs);
  for (const path of target.paths) await mounts.ask(path);
  const path = await run(firstDirectory(target.paths, new Disk(fs, mounts, clock, noAnswers())));
  if (path !== undefined) throw directoryInGroup(path);
}

function* firstDirectory(paths: readonly string[], disk: Disk): Steps<string | undefined> {
  for (const path of paths) {
    yield* nextSlice();
    try {
      const at = yield* resolve(path, disk);
      if (at.kind === 'found' && at.stat.isDirectory()) return path;
    } catch (error) {
      // The first look reports it.
      if (errnoOf(error) === undefined) throw error;
    }
  }
  return undefined;
}

function directoryInGroup(path: string): TargetError {
  const message = `Cannot watch "${told(path)}" as part of a group: it is a directory; give it a watcher of its own, with "recursive" if needed`;
  return new TargetError('ERR_TARGET_DIRECTORY', path, message);
}

/** The files at several paths. */
export class GroupTarget implements Target {
  readonly #limits: ReadLimits;
  /** Replaced, never modified, because a look may be in progress. */
  #members: Members;
  /** The members at the last look that found something. */
  #shown: Members | undefined;
  #last: Found | undefined;
  /** What is kept of the members. */
  #kept: Kept = 'contents';

  constructor(members: Members, limits: ReadLimits) {
    this.#members = members;
    this.#limits = limits;
  }

  get path(): string {
    return this.paths.map(told).join(', ');
  }

  get paths(): readonly string[] {
    return [...this.#members.values()];
  }

  fresh(): GroupTarget {
    return new GroupTarget(this.#members, this.#limits);
  }

  /** Every look visits every member. */
  touch(): void {}

  /** A relative path is resolved against the working directory, but its key is the path as it was given. */
  add(given: string | URL): void {
    const path = absoluteGivenPath('path', given);
    if ([...this.#members.values()].includes(path)) {
      throw new TypeError(`Cannot add "${told(path)}": it is already in the group`);
    }
    const key = typeof given === 'string' ? given : told(path);
    if (this.#members.has(key)) {
      throw new TypeError(
        `Cannot add "${told(path)}": the group has another file with the key "${key}"; pass the absolute path`,
      );
    }
    this.#members = new Map([...this.#members, [key, path]]);
  }

  remove(given: string | URL): void {
    const path = absoluteGivenPath('path', given);
    const rest = [...this.#members].filter(([, member]) => member !== path);
    if (rest.length === this.#members.size)
      throw new TypeError(`Cannot remove "${told(path)}": it is not in the group`);
    if (rest.length === 0)
      throw new TypeError(
        `Cannot remove "${told(path)}": it is the last file of the group; close the watcher`,
      );
    this.#members = new Map(rest);
  }

  look(_extent: Extent, shared: Disk): Steps<Observation> {
    const members = this.#members;
    const seen = { consulted: { directories: [] } };
    return attempts(shared, seen, (disk) => this.#attempt(members, disk, seen));
  }

  /** @param seen receives what was consulted. */
  *#attempt(members: Members, disk: Disk, seen: { consulted: Consulted }): Steps<Observation | Moved> {
    const read: Member[] = [];
    const totals = new ReadTotals(this.#limits);
    seen.consulted = this.#last?.consulted ?? consultedFor(read);
    for (const [key, path] of members) {
      yield* nextSlice();
      const resolution = yield* resolve(path, disk);
      try {
        const file = yield* this.#fileAt(key, path, resolution, disk);
        if (file === MOVED) return MOVED;
        if (file) totals.count(file.size, 1);
        read.push({ key, resolution, file });
      } catch (error) {
        if (errnoOf(error) === undefined || hasMoved(error)) throw error;
        const failure = error instanceof TargetError ? error : readingError(pathOf(resolution), error);
        return { kind: 'unreadable', error: failure, consulted: consultedFor(read, resolution.route) };
      }
    }
    // The next attempt reads them as the limits want it.
    if (totals.kept !== this.#kept) {
      this.#kept = totals.kept;
      return MOVED;
    }
    const known = this.#known(members, read);
    if (known) return known;
    try {
      return (yield* isAsRead(read, disk.afresh)) ? this.#together(members, read, totals.limited) : MOVED;
    } catch (error) {
      // The next attempt reports it.
      if (errnoOf(error) === undefined) throw error;
      return MOVED;
    }
  }

  /** Undefined if it is missing. */
  *#fileAt(
    key: string,
    path: string,
    resolution: Resolution,
    disk: Disk,
  ): Steps<FileSnapshot | undefined | Moved> {
    if (resolution.kind === 'missing') return undefined;
    if (resolution.kind === 'unreadable')
      throw hasMoved(resolution.error.cause) ? resolution.error.cause : resolution.error;
    const { path: realPath, stat, route } = resolution;
    if (stat.isDirectory()) return undefined;
    if (!stat.isFile()) {
      throw wrongPath(realPath, 'it is a device, a pipe or a socket; every path of a group must name a file');
    }
    const place = { path, realPath, way: route.way };
    const known = this.#last?.snapshot.files.get(key);
    const { maxContentBytes } = this.#limits;
    return (yield* fileAt(place, stat, known, { kept: this.#kept, maxContentBytes }, disk)) ?? MOVED;
  }

  /** The last result, if this one is the same. */
  #known(members: Members, read: readonly Member[]): Found | undefined {
    if (!this.#last || this.#shown !== members) return undefined;
    const known = this.#last.snapshot.files;
    if (this.#last.unreadable?.path !== directoryIn(members, read)?.path) return undefined;
    if (this.#last.unlinked?.size !== unlinkedIn(read).size) return undefined;
    if (!read.every(({ key, file }) => known.get(key) === file)) return undefined;
    return haveSameDirectories(this.#last.consulted, consultedFor(read)) ? this.#last : undefined;
  }

  #together(members: Members, read: readonly Member[], limited: string | undefined): Observation {
    const consulted = consultedFor(read);
    const files = new Map(read.flatMap(({ key, file }) => (file ? [[key, file] as const] : [])));
    const unreadable = directoryIn(members, read);
    if (files.size === 0 && unreadable) return { kind: 'unreadable', error: unreadable, consulted };
    const before = this.#shown ?? members;
    this.#shown = members;
    const isRegrouped: Regrouped | undefined =
      before === members ? undefined : (key) => before.get(key) !== members.get(key);
    if (files.size === 0) {
      const gaps = read.flatMap(({ resolution }) => (resolution.kind === 'missing' ? [resolution] : []));
      const isGap = gaps.some((gap) => gap.isGap);
      return { kind: 'missing', isGap, changedNs: gaps[0]?.changedNs ?? 0n, consulted, isRegrouped };
    }
    const { path } = this;
    const snapshot = new SetSnapshot({ kind: 'group', path, realPath: path, revision: undefined, files });
    this.#last = { kind: 'found', snapshot, consulted, unreadable, unlinked: unlinkedIn(read), limited };
    return isRegrouped ? { ...this.#last, isRegrouped } : this.#last;
  }
}

/** See `Found`. */
function unlinkedIn(read: readonly Member[]): ReadonlySet<string> {
  return new Set(
    read.flatMap(({ resolution }) => (resolution.kind === 'missing' ? (resolution.unlinkedIn ?? []) : [])),
  );
}

/** Why the first member that is a directory is not read. */
function directoryIn(members: Members, read: readonly Member[]): TargetError | undefined {
  const directory = read.find(({ resolution, file }) => resolution.kind === 'found' && !file);
  return directory && directoryInGroup(members.get(directory.key) ?? '');
}

function pathOf(resolution: Resolution): string {
  return resolution.kind === 'unreadable' ? resolution.error.path : resolution.path;
}

/** The directories that were consulted for all members. */
function consultedFor(read: readonly Member[], ...others: Consulted[]): Consulted {
  return consultedBy(() => [...read.map(({ resolution }) => resolution.route), ...others]);
}

/** Whether each path still leads where it led when it was read: then all files existed at one instant. */
function* isAsRead(read: readonly Member[], disk: Disk): Steps<boolean> {
  const missing = read.filter(({ resolution }) => resolution.kind === 'missing');
  const others = read.filter(({ resolution }) => resolution.kind !== 'missing');
  // They are missing before and after the others are there: a directory above them may be away for a moment.
  for (const { resolution } of [...missing, ...others, ...missing]) {
    yield* nextSlice();
    // A member may have been removed before another one was looked for.
    const { kind } = resolution;
    if (missing.length > 0 && kind !== 'unreadable') {
      const isThere = (yield* disk.lstat(resolution.path)) !== undefined;
      if (isThere !== (kind === 'found')) return false;
    }
    // Published after it was looked up, and perhaps before the others were.
    const wasUnpublished = kind === 'missing' && resolution.unlinkedIn === undefined;
    if (wasUnpublished && (yield* isPublished(resolution.path, disk))) return false;
    if (yield* wereRetargeted(resolution.route.way.links, disk)) return false;
  }
  return true;
}
