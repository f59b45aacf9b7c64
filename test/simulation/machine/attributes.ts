/** Permissions, owners and times. */
import { Errno } from './errors.js';
import { SET_GROUP, type Inode } from './inode.js';
import { ATTRIB } from './inotify.js';
import { existing, lookup, type User } from './lookup.js';
import type { Place } from './mounts.js';
import type { Process } from './process.js';

const PERMISSIONS = 0o7777;
const SET_USER = 0o4000;
const GROUP_EXECUTE = 0o010;

/** @throws {Errno} EROFS */
export function assertMayChange({ mount }: Place): void {
  if (mount.isReadOnly) throw new Errno('EROFS');
}

function assertOwner({ uid }: User, inode: Inode): void {
  if (uid !== 0 && uid !== inode.uid) throw new Errno('EPERM');
}

export function changeMode(process: Process, place: Place, mode: number): void {
  const { inode } = place.entry;
  assertMayChange(place);
  assertOwner(process, inode);
  const isInGroup = process.uid === 0 || process.gid === inode.gid;
  inode.mode = mode & PERMISSIONS & (isInGroup ? PERMISSIONS : ~SET_GROUP);
  attributesChanged(process, place);
}

/** @param uid -1: stays as it is; so does `gid`. */
export function changeOwner(process: Process, place: Place, uid: number, gid: number): void {
  const { inode } = place.entry;
  assertMayChange(place);
  const isOwner = process.uid === inode.uid;
  const keepsUser = uid === -1 || (uid === inode.uid && isOwner);
  const keepsGroup = gid === -1 || (isOwner && (gid === inode.gid || gid === process.gid));
  if (process.uid !== 0 && !(keepsUser && keepsGroup)) throw new Errno('EPERM');
  const lost = inode.kind === 'directory' ? 0 : setIds(process, inode);
  if (lost !== 0) assertOwner(process, inode);
  if (uid !== -1) inode.uid = uid;
  if (gid !== -1) inode.gid = gid;
  inode.mode &= ~lost;
  const isTold = uid !== -1 || gid !== -1 || lost !== 0;
  attributesChanged(process, place, isTold);
}

/** The bits that a user loses who changes a file or its owner. */
function setIds({ uid, gid }: User, inode: Inode): number {
  const isInGroup = uid === 0 || gid === inode.gid;
  return inode.mode & (inode.mode & GROUP_EXECUTE || !isInGroup ? SET_USER | SET_GROUP : SET_USER);
}

/** Before a write. Returns whether there was anything to drop. @param isTold false: the caller tells. */
export function dropSetIds(process: Process, place: Place, isTold = true): boolean {
  const { inode } = place.entry;
  const lost = process.uid === 0 ? 0 : setIds(process, inode);
  if (lost === 0) return false;
  inode.mode &= ~lost;
  attributesChanged(process, place, isTold);
  return true;
}

function attributesChanged(process: Process, { entry }: Place, isTold = true): void {
  const { inode } = entry;
  const { saved, mode, uid, gid } = inode;
  inode.changed();
  inode.storage.record([inode], () => Object.assign(saved, { mode, uid, gid }));
  if (isTold) process.notify.entry(entry, ATTRIB);
}

const at = (process: Process, path: string): Place => existing(lookup(process, path, 'follow'));

export const attributeCalls = {
  chmod(process: Process, path: string, mode: number): void {
    changeMode(process, at(process, path), mode);
  },

  chown(process: Process, path: string, uid: number, gid: number): void {
    changeOwner(process, at(process, path), uid, gid);
  },

  /** @param _atime access times are not modeled. @param mtime s. */
  utimes(process: Process, path: string, _atime: number, mtime: number): void {
    const place = at(process, path);
    const { inode } = place.entry;
    assertMayChange(place);
    assertOwner(process, inode);
    inode.mtimeNs = BigInt(Math.round(mtime * 1_000)) * 1_000_000n;
    inode.changed();
    process.notify.entry(place.entry, ATTRIB);
  },
};
