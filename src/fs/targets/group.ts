/**
 * A group of files as one target: their contents come from one instant.
 *
 * | the members                           | the group is |
 * |---------------------------------------|--------------|
 * | all of them are missing               | missing      |
 * | some are missing                      | the others   |
 * | one is a directory, or cannot be read | unreadable   |
 * | a link was retargeted during the read | read again   |
 */
import { errnoOf, hasMoved } from '../../core/errno.js';
import type { WatchedDirectory } from '../../core/watch-backend.js';
import type { Disk } from '../disk.js';
import { absoluteGivenPath } from '../given-path.js';
import type { Look } from '../look.js';
import { haveSameDirectories, mergeDirectories } from '../merge-directories.js';
import {
  MAX_ATTEMPTS,
  type Consulted,
  type Found,
  type LookScope,
  type Observation,
  type Regrouped,
  type Target,
} from '../observation.js';
import type { ReadLimits } from '../read-limits.js';
import { areTurned, resolve, type Resolution } from '../resolve.js';
import { filesIn, SetSnapshot, type FileSnapshot } from '../snapshot.js';
import { readingError, wrongPath, type TargetError } from '../target-error.js';
import { fileAt } from './file.js';

/** How many members are read in one step. */
const MEMBERS_IN_STEP = 100;

/** The absolute paths, by the keys that they are reported under. */
type Members = ReadonlyMap<string, string>;

/** A member as it was read. */
interface Member {
  readonly key: string;
  readonly resolution: Resolution;
  /** Undefined if it is missing. */
  readonly file: FileSnapshot | undefined;
}

/** The files at several paths. */
export class GroupTarget implements Target {
  readonly #limits: ReadLimits;
  /** Replaced, never modified, because a look may be in progress. */
  #members: Members;
  /** The members at the last look that found something. */
  #shown: Members | undefined;
  #last: Found | undefined;

  constructor(members: Members, limits: ReadLimits) {
    this.#members = members;
    this.#limits = limits;
  }

  get path(): string {
    return this.paths.join(', ');
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
      throw new TypeError(`Cannot add "${path}": it is already in the group`);
    }
    this.#members = new Map([...this.#members, [typeof given === 'string' ? given : path, path]]);
  }

  remove(given: string | URL): void {
    const path = absoluteGivenPath('path', given);
    const rest = [...this.#members].filter(([, member]) => member !== path);
    if (rest.length === this.#members.size)
      throw new TypeError(`Cannot remove "${path}": it is not in the group`);
    if (rest.length === 0)
      throw new TypeError(`Cannot remove "${path}": it is the last file of the group; close the watcher`);
    this.#members = new Map(rest);
  }

  look(_extent: LookScope, now: number): Look<Observation> {
    const members = this.#members;
    let read: readonly Member[] = [];
    let attempts = 0;
    return {
      next: (shared) => {
        const disk = attempts === 0 ? shared : shared.afresh;
        if (read.length < members.size) {
          const batch = [...members].slice(read.length, read.length + MEMBERS_IN_STEP);
          const found: Member[] = [];
          for (const [key, path] of batch) {
            const member = this.#memberAt(key, path, now, disk);
            if (isMember(member)) found.push(member);
            else if (member)
              return { ...member, consulted: consultedFor([...read, ...found], member.consulted) };
          }
          if (found.length === batch.length) {
            read = [...read, ...found];
            return read.length === members.size ? this.#known(members, read) : undefined;
          }
        } else if (isAsRead(read, shared.afresh)) return this.#together(members, read);
        attempts += 1;
        const { consulted } = this.#last ?? { consulted: consultedFor(read) };
        read = [];
        return attempts === MAX_ATTEMPTS ? { kind: 'unstable', consulted } : undefined;
      },
    };
  }

  /** Undefined if it was replaced while it was read. */
  #memberAt(
    key: string,
    path: string,
    now: number,
    disk: Disk,
  ): Member | Extract<Observation, { kind: 'unreadable' }> | undefined {
    const resolution = resolve(path, disk);
    const { route } = resolution;
    if (resolution.kind === 'missing') return { key, resolution, file: undefined };
    if (resolution.kind === 'unreadable' && hasMoved(resolution.error.cause)) return undefined;
    if (resolution.kind === 'unreadable')
      return { kind: 'unreadable', error: resolution.error, consulted: route };
    const { path: realPath, stat, entryNs } = resolution;
    const { links, turnedNs, revision } = route;
    if (!stat.isFile()) return { kind: 'unreadable', error: notAFile(realPath), consulted: route };
    const place = { path, realPath, revision, links, turnedNs, entryNs };
    const known = this.#last && filesIn(this.#last.snapshot).get(key);
    const { maxContentBytes } = this.#limits;
    try {
      const file = fileAt(place, stat, known, { kept: 'contents', maxContentBytes, now }, disk);
      return file && { key, resolution, file };
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      if (hasMoved(error)) return undefined;
      return { kind: 'unreadable', error: readingError(realPath, error), consulted: route };
    }
  }

  /** The last result, if this one is the same. */
  #known(members: Members, read: readonly Member[]): Found | undefined {
    if (!this.#last || this.#shown !== members) return undefined;
    const known = filesIn(this.#last.snapshot);
    if (!read.every(({ key, file }) => known.get(key) === file)) return undefined;
    return haveSameDirectories(this.#last.consulted, consultedFor(read)) ? this.#last : undefined;
  }

  #together(members: Members, read: readonly Member[]): Observation {
    const consulted = consultedFor(read);
    const before = this.#shown ?? members;
    this.#shown = members;
    const isRegrouped: Regrouped | undefined =
      before === members ? undefined : (key) => before.get(key) !== members.get(key);
    const files = new Map(read.flatMap(({ key, file }) => (file ? [[key, file] as const] : [])));
    if (files.size === 0) {
      const gaps = read.flatMap(({ resolution }) => (resolution.kind === 'missing' ? [resolution] : []));
      const isGap = gaps.some((gap) => gap.isGap);
      return { kind: 'missing', isGap, changedNs: gaps[0]?.changedNs ?? 0n, consulted, isRegrouped };
    }
    const { path } = this;
    const snapshot = new SetSnapshot({ kind: 'group', path, realPath: path, revision: undefined, files });
    this.#last = { kind: 'found', snapshot, consulted };
    return isRegrouped ? { ...this.#last, isRegrouped } : this.#last;
  }
}

function isMember(member: Member | Observation | undefined): member is Member {
  return member !== undefined && !('kind' in member);
}

/** The directories that were consulted for all members; computed on first use. */
function consultedFor(read: readonly Member[], ...others: Consulted[]): Consulted {
  let directories: readonly WatchedDirectory[] | undefined;
  return {
    get directories() {
      const all = [...read.map(({ resolution }) => resolution.route), ...others];
      return (directories ??= mergeDirectories(all.flatMap((consulted) => consulted.directories)));
    },
  };
}

/** Whether each path still leads where it led when it was read: then all files existed at one instant. */
function isAsRead(read: readonly Member[], disk: Disk): boolean {
  try {
    return read.every(({ resolution }) => {
      const isBack = resolution.kind === 'missing' && disk.lstat(resolution.path) !== undefined;
      return !isBack && !areTurned(resolution.route.links, disk);
    });
  } catch (error) {
    // The next attempt reports it.
    if (errnoOf(error) === undefined) throw error;
    return false;
  }
}

function notAFile(path: string): TargetError {
  return wrongPath(path, 'it is a directory; every path of a group must name a file');
}
