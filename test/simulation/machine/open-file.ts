/** What a descriptor stands for, and the calls that take one. */
import { constants } from 'node:fs';

import { assertMayChange, changeMode, changeOwner, dropSetIds } from './attributes.js';
import { Errno, Stuck } from './errors.js';
import type { Entry, Inode, Stat } from './inode.js';
import { ATTRIB, DELETE_SELF, MODIFY } from './inotify.js';
import { existing, isAllowed, lookup, READ, WRITE, type Found } from './lookup.js';
import type { Place } from './mounts.js';
import { createEntry } from './names.js';
import type { Process } from './process.js';

const { O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_NONBLOCK, O_DIRECTORY, O_NOFOLLOW } =
  constants;
/** Node.js has no constant for it. */
const O_PATH = 0o10_000_000;

export const MOUNT_TABLE = '/proc/self/mountinfo';
const DESCRIPTOR_INFO = '/proc/self/fdinfo/';

export class OpenFile {
  position = 0;

  readonly path: string;
  readonly place: Place;
  readonly flags: number;
  /** What is read, if it is not what the inode holds. */
  readonly text: Buffer | undefined;

  constructor(path: string, place: Place, flags: number, text?: Buffer) {
    this.path = path;
    this.place = place;
    this.flags = flags;
    this.text = text;
    const { entry, mount } = place;
    entry.opens += 1;
    entry.inode.opens += 1;
    mount.opens += 1;
    mount.storage.opens += 1;
  }

  get inode(): Inode {
    return this.place.entry.inode;
  }

  /** The inode, for a call that needs more than a path. @throws {Errno} EBADF */
  inodeFor(access?: typeof READ | typeof WRITE): Inode {
    if (this.place.mount.isHung) throw new Stuck(this.place.mount);
    if (this.flags & O_PATH) throw new Errno('EBADF');
    const mode = this.flags & (O_WRONLY | O_RDWR);
    if (access === READ && mode === O_WRONLY) throw new Errno('EBADF');
    if (access === WRITE && mode !== O_WRONLY && mode !== O_RDWR) throw new Errno('EBADF');
    return this.inode;
  }

  close(process: Process): void {
    const { entry, mount } = this.place;
    entry.opens -= 1;
    entry.inode.opens -= 1;
    mount.opens -= 1;
    mount.storage.opens -= 1;
    endIfUnused(process, entry);
    process.machine.endIfUnmounted(mount.storage);
  }
}

/** Once an inode has neither name nor descriptor, its number is free. */
export function endIfUnused(process: Process, { isRemoved, opens, inode }: Entry): void {
  if (isRemoved && opens === 0 && inode.nlink === 0 && !inode.isEnded) {
    inode.isEnded = true;
    process.notify.end(inode, DELETE_SELF);
  }
  if (inode.isEnded && inode.opens === 0) inode.storage.free(inode);
}

export const fileCalls = {
  open(process: Process, path: string, flags: number, mode = 0o666): number {
    process.assertDescriptor();
    const text = process.hasProc ? textOfProc(process, path) : undefined;
    if (text !== undefined) return process.add(new OpenFile(path, process.root, 0, Buffer.from(text)));
    const isExclusive = (flags & O_CREAT) !== 0 && (flags & O_EXCL) !== 0;
    const follows = !(flags & O_NOFOLLOW) && !isExclusive;
    const found = lookup(process, path, follows ? 'follow' : 'keep', (flags & O_CREAT) !== 0);
    if (!found.place) return process.add(new OpenFile(path, create(process, found, flags, mode), flags));
    if (isExclusive) throw new Errno('EEXIST');
    const place = existing(found);
    const isDirectory = place.entry.inode.kind === 'directory';
    if (isDirectory && process.machine.platform === 'win32') throw new Errno('EPERM');
    assertMayOpen(process, place, flags);
    const file = new OpenFile(path, place, flags);
    if (flags & O_TRUNC && file.inode.kind === 'file') setSize(process, place, 0);
    return process.add(file);
  },

  close(process: Process, fd: number): void {
    process.file(fd).close(process);
    process.remove(fd);
  },

  fstat(process: Process, fd: number): Stat {
    const { place, inode } = process.file(fd);
    if (place.mount.isHung) throw new Stuck(place.mount);
    return inode.stat;
  },

  read(
    process: Process,
    fd: number,
    buffer: Uint8Array,
    offset: number,
    length: number,
    position: number | null,
  ): number {
    const file = process.file(fd);
    const inode = file.inodeFor(READ);
    const bytes = file.text ?? inode.bytes;
    if (inode.kind === 'directory' && !file.text) throw new Errno('EISDIR');
    const at = position ?? file.position;
    const count = at < bytes.length ? bytes.copy(buffer, offset, at, at + length) : 0;
    if (position === null) file.position += count;
    return count;
  },

  write(
    process: Process,
    fd: number,
    buffer: Uint8Array,
    offset: number,
    length: number,
    position: number | null,
  ): number {
    const file = process.file(fd);
    const inode = file.inodeFor(WRITE);
    length = Math.min(length, process.maxWriteBytes);
    if (length === 0) return 0;
    const at = file.flags & O_APPEND ? inode.bytes.length : (position ?? file.position);
    const size = Math.max(inode.bytes.length, at + length);
    const count = Math.min(length, inode.storage.resize(inode, size) - at);
    dropSetIds(process, file.place);
    const bytes = Buffer.alloc(Math.max(inode.bytes.length, at + count));
    inode.bytes.copy(bytes);
    bytes.set(buffer.subarray(offset, offset + count), at);
    inode.bytes = bytes;
    if (position === null) file.position = at + count;
    inode.modified();
    process.notify.entry(file.place.entry, MODIFY);
    return count;
  },

  ftruncate(process: Process, fd: number, size = 0): void {
    const file = process.file(fd);
    if (file.inodeFor().kind !== 'file' || !(file.flags & (O_WRONLY | O_RDWR))) throw new Errno('EINVAL');
    setSize(process, file.place, size);
  },

  fsync(process: Process, fd: number): void {
    const inode = process.file(fd).inodeFor();
    inode.storage.sync(inode);
  },

  fchmod(process: Process, fd: number, mode: number): void {
    const file = process.file(fd);
    file.inodeFor();
    changeMode(process, file.place, mode);
  },

  fchown(process: Process, fd: number, uid: number, gid: number): void {
    const file = process.file(fd);
    file.inodeFor();
    changeOwner(process, file.place, uid, gid);
  },
};

/** What a file of `/proc` holds; undefined if this is no such path. */
function textOfProc(process: Process, path: string): string | undefined {
  if (path === MOUNT_TABLE) return process.machine.mountInfo;
  if (!path.startsWith(DESCRIPTOR_INFO)) return undefined;
  return process.descriptorInfo(Number(path.slice(DESCRIPTOR_INFO.length)));
}

function create(process: Process, found: Found, flags: number, mode: number): Place {
  if (!(flags & O_CREAT)) throw new Errno('ENOENT');
  const entry = createEntry(process, found, 'file', mode);
  return { mount: found.parent.mount, entry };
}

function assertMayOpen(process: Process, place: Place, flags: number): void {
  const { inode } = place.entry;
  const { kind } = inode;
  if (flags & O_CREAT && kind === 'directory') throw new Errno('EISDIR');
  if (flags & O_DIRECTORY && kind !== 'directory') throw new Errno('ENOTDIR');
  if (flags & O_PATH) return;
  if (kind === 'link') throw new Errno('ELOOP');
  const mode = flags & (O_WRONLY | O_RDWR);
  const writes = mode !== 0 || (flags & O_TRUNC) !== 0;
  if (kind === 'directory' && writes) throw new Errno('EISDIR');
  const access = (mode === O_WRONLY ? 0 : READ) | (writes ? WRITE : 0);
  if (!isAllowed(process, inode, access)) throw new Errno('EACCES');
  if (writes) assertMayChange(place);
  if (kind !== 'pipe') return;
  if (!(flags & O_NONBLOCK)) throw new Stuck({ isHung: true });
  if (mode === O_WRONLY) throw new Errno('ENXIO');
}

function setSize(process: Process, place: Place, size: number): void {
  const { entry } = place;
  const { inode } = entry;
  if (inode.storage.resize(inode, size) < size) throw new Errno('ENOSPC');
  const attribute = dropSetIds(process, place, false) ? ATTRIB : 0;
  const bytes = Buffer.alloc(size);
  inode.bytes.copy(bytes);
  inode.bytes = bytes;
  inode.modified();
  process.notify.entry(entry, MODIFY | attribute);
}
