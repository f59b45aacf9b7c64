/** Finds what a path leads to (`path_resolution(7)`). */
import { Errno, Stuck } from './errors.js';
import { STICKY, type Inode } from './inode.js';
import { enter, parentOf, type Place } from './mounts.js';

const MAX_PATH_BYTES = 4_096;
const MAX_NAME_BYTES = 255;
const MAX_LINKS = 40;

export const READ = 4;
export const WRITE = 2;
export const SEARCH = 1;

/** Who looks. */
export interface User {
  readonly uid: number;
  readonly gid: number;
}

interface Viewer extends User {
  readonly root: Place;
  readonly isContained: boolean;
  /** Where a path below `/proc/self/fd` leads: the descriptor's place. */
  descriptorPlace(fd: number): Place;
}

export interface Found {
  /** Where the last name was looked up. */
  readonly parent: Place;
  /** The last name; `.` or `..` if the path ends so, or is that of the root. */
  readonly name: string;
  /** What is there; undefined if there is nothing. */
  readonly place: Place | undefined;
  /** The path ends with a slash. */
  readonly isDirectory: boolean;
}

/**
 * What becomes of a link at the end of a path. `follow`: it is followed. `keep`: only if a slash follows it. `entry`:
 * never, and what is mounted at the end is not entered either.
 */
export type AtTheEnd = 'follow' | 'keep' | 'entry';

/** @param creates whether a file is created if nothing is there. */
export function lookup(viewer: Viewer, path: string, end: AtTheEnd, creates = false): Found {
  if (path === '') throw new Errno('ENOENT');
  if (path.length >= MAX_PATH_BYTES / 4 && Buffer.byteLength(path) >= MAX_PATH_BYTES)
    throw new Errno('ENAMETOOLONG');
  let at = viewer.root;
  const descriptor = path.startsWith('/proc/') ? /^\/proc\/self\/fd\/(\d+)(?:\/|$)/.exec(path) : null;
  if (descriptor) at = viewer.descriptorPlace(Number(descriptor[1]));
  const rest = [...namesIn(descriptor ? path.slice(descriptor[0].length) : path)];
  let isDirectory = path.endsWith('/');
  let last = '.';
  let links = 0;
  for (let name = rest.pop(); name !== undefined; name = rest.pop()) {
    const directory = at.entry.inode;
    if (at.mount.isHung) throw new Stuck(at.mount);
    if (directory.kind !== 'directory') throw new Errno('ENOTDIR');
    if (!isAllowed(viewer, directory, SEARCH)) throw new Errno('EACCES');
    last = name;
    if (name === '.') continue;
    if (name === '..') {
      at = parentOf(at, viewer.isContained);
      continue;
    }
    const entry = directory.find(name);
    const isLast = rest.length === 0;
    if (isLast && creates && isDirectory) throw new Errno('EISDIR');
    if (!entry && !(isLast && end === 'entry')) assertNameLength(name);
    if (!entry) {
      if (!isLast) throw new Errno('ENOENT');
      return { parent: at, name, place: undefined, isDirectory };
    }
    const { inode } = entry;
    if (inode.kind === 'link' && (!isLast || end === 'follow' || (isDirectory && end === 'keep'))) {
      if ((links += 1) > MAX_LINKS) throw new Errno('ELOOP');
      if (inode.leadsTo) {
        assertMayFollow(viewer, inode);
        at = inode.leadsTo;
        last = '.';
        continue;
      }
      if (isLast && inode.target.endsWith('/')) isDirectory = true;
      if (inode.target.startsWith('/')) at = viewer.root;
      rest.push(...namesIn(inode.target));
      last = '.';
      continue;
    }
    const parent = at;
    at = { mount: at.mount, entry };
    if (isLast && end === 'entry') return { parent, name, place: at, isDirectory };
    at = enter(at, viewer.isContained);
    if (isLast) {
      if (at.mount.isHung) throw new Stuck(at.mount);
      return { parent, name, place: at, isDirectory };
    }
  }
  if (at.mount.isHung) throw new Stuck(at.mount);
  return { parent: at, name: last, place: at, isDirectory };
}

/** Before a link of `/proc` that leads to an object is read or followed. @throws {Errno} EACCES for another user. */
export function assertMayFollow({ uid }: User, link: Inode): void {
  if (uid !== 0 && uid !== link.uid) throw new Errno('EACCES');
}

/** @throws {Errno} ENAMETOOLONG */
export function assertNameLength(name: string): void {
  const mayBeLonger = name.length > MAX_NAME_BYTES / 3;
  if (mayBeLonger && Buffer.byteLength(name) > MAX_NAME_BYTES) throw new Errno('ENAMETOOLONG');
}

/** The names of each path so far, because the same few paths are looked up all the time. */
const known = new Map<string, readonly string[]>();
const MAX_KNOWN = 10_000;

/** The names in a path, the last one first. */
function namesIn(path: string): readonly string[] {
  let names = known.get(path);
  if (!names) {
    if (known.size >= MAX_KNOWN) known.clear();
    names = path
      .split('/')
      .filter((name) => name !== '')
      .reverse();
    known.set(path, names);
  }
  return names;
}

/** What is at the end of a path. @throws {Errno} ENOENT, or ENOTDIR if the path ends with a slash and it is no directory. */
export function existing({ place, isDirectory }: Found): Place {
  if (!place) throw new Errno('ENOENT');
  if (isDirectory && place.entry.inode.kind !== 'directory') throw new Errno('ENOTDIR');
  return place;
}

/** Whether the user may do all of this. @param access a sum of READ, WRITE and SEARCH. */
export function isAllowed({ uid, gid }: User, inode: Inode, access: number): boolean {
  if (uid === 0) return true;
  const shift = uid === inode.uid ? 6 : gid === inode.gid ? 3 : 0;
  return ((inode.mode >> shift) & access) === access;
}

/** @throws {Errno} if the user may not create an entry in this directory. */
export function assertMayCreate(user: User, { entry, mount }: Place): void {
  if (mount.isReadOnly) throw new Errno('EROFS');
  if (entry.isRemoved) throw new Errno('ENOENT');
  if (!isAllowed(user, entry.inode, WRITE | SEARCH)) throw new Errno('EACCES');
}

/** @throws {Errno} if the user may not remove or replace an entry of this directory. */
export function assertMayRemove(
  user: User,
  { entry, mount }: Place,
  victim: Inode,
  asDirectory: boolean,
): void {
  const directory = entry.inode;
  if (mount.isReadOnly) throw new Errno('EROFS');
  if (!isAllowed(user, directory, WRITE | SEARCH)) throw new Errno('EACCES');
  const isOwner = [0, victim.uid, directory.uid].includes(user.uid);
  if (directory.mode & STICKY && !isOwner) throw new Errno('EPERM');
  if (asDirectory && victim.kind !== 'directory') throw new Errno('ENOTDIR');
  if (!asDirectory && victim.kind === 'directory') throw new Errno('EISDIR');
}
