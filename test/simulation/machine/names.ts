/** The calls that create, move and remove names. */
import { Errno } from './errors.js';
import { Entry, SET_GROUP, type Inode, type Kind } from './inode.js';
import { ATTRIB, CREATE, DELETE, MOVED_FROM, MOVED_TO, MOVE_SELF } from './inotify.js';
import {
  assertMayCreate,
  assertMayRemove,
  assertNameLength,
  existing,
  isAllowed,
  lookup,
  READ,
  WRITE,
  type Found,
} from './lookup.js';
import { endIfUnused } from './open-file.js';
import type { Process } from './process.js';

const MAX_TARGET_BYTES = 4_095;

/** Creates an inode with a name. */
export function createEntry(process: Process, found: Found, kind: Kind, mode: number): Entry {
  const directory = assertNew(process, found, kind);
  const { storage } = directory;
  const inherits = (directory.mode & SET_GROUP) !== 0;
  const permissions =
    kind === 'link' ? 0o777 : mode & ~process.umask & (kind === 'directory' ? 0o1777 : 0o7777);
  const inode = storage.create(
    kind,
    inherits && kind === 'directory' ? permissions | SET_GROUP : permissions,
    process.uid,
    inherits ? directory.gid : process.gid,
  );
  const entry = link(found, inode);
  if (kind === 'directory') {
    inode.nlink = 2;
    directory.nlink += 1;
  }
  return announce(process, entry);
}

/** Gives an inode another name. */
function link({ parent: { entry: parent }, name }: Found, inode: Inode): Entry {
  const directory = parent.inode;
  const entry = new Entry(name, parent, inode);
  directory.entries.set(name, entry);
  directory.modified();
  inode.nlink += 1;
  inode.storage.record([directory], () => directory.saved.entries.set(name, inode), inode);
  return entry;
}

function announce(process: Process, entry: Entry): Entry {
  if (entry.parent) process.notify.name(entry.parent.inode, CREATE, entry.name, entry.inode);
  return entry;
}

/** @throws {Errno} if the name exists, or cannot be created here. */
function assertNew(process: Process, { parent, place, name, isDirectory }: Found, kind: Kind): Inode {
  assertNameLength(name);
  if (place) throw new Errno('EEXIST');
  if (isDirectory && kind !== 'directory') throw new Errno('ENOENT');
  assertMayCreate(process, parent);
  return parent.entry.inode;
}

/** What a call removes or moves. */
function victimOf({ place, name }: Found): Entry {
  assertNameLength(name);
  if (!place) throw new Errno('ENOENT');
  return place.entry;
}

/** A name is gone. */
function removed(entry: Entry): void {
  const { parent, inode } = entry;
  entry.isRemoved = true;
  if (inode.kind === 'directory') {
    inode.nlink = 0;
    if (parent) parent.inode.nlink -= 1;
  } else inode.nlink -= 1;
  inode.changed();
}

const isDots = (name: string): boolean => name === '.' || name === '..';

export const nameCalls = {
  mkdir(process: Process, path: string, mode: number | { readonly mode?: number } = 0o777): void {
    const given = typeof mode === 'number' ? mode : (mode.mode ?? 0o777);
    createEntry(process, lookup(process, path, 'entry'), 'directory', given);
  },

  symlink(process: Process, target: string, path: string): void {
    // A user of Windows has no right to make one.
    if (process.machine.platform === 'win32') throw new Errno('EPERM');
    const found = lookup(process, path, 'entry');
    if (target === '') throw new Errno('ENOENT');
    if (Buffer.byteLength(target) > MAX_TARGET_BYTES) throw new Errno('ENAMETOOLONG');
    createEntry(process, found, 'link', 0o777).inode.target = target;
  },

  /** Not a call of `node:fs`: makes a pipe. */
  mkfifo(process: Process, path: string, mode = 0o666): void {
    createEntry(process, lookup(process, path, 'entry'), 'pipe', mode);
  },

  link(process: Process, from: string, to: string): void {
    const source = lookup(process, from, 'keep');
    const { inode } = existing(source).entry;
    const target = lookup(process, to, 'entry');
    assertNameLength(target.name);
    if (target.place) throw new Errno('EEXIST');
    if (target.isDirectory) throw new Errno('ENOENT');
    if (source.place?.mount !== target.parent.mount) throw new Errno('EXDEV');
    // As with fs.protected_hardlinks=1.
    const isSafe = inode.kind === 'file' && isAllowed(process, inode, READ | WRITE);
    if (process.uid !== 0 && process.uid !== inode.uid && !isSafe) throw new Errno('EPERM');
    assertNew(process, target, 'file');
    if (inode.kind === 'directory') throw new Errno('EPERM');
    const entry = link(target, inode);
    inode.changed();
    process.notify.inode(inode, ATTRIB);
    announce(process, entry);
  },

  unlink(process: Process, path: string): void {
    const found = lookup(process, path, 'entry');
    if (isDots(found.name)) throw new Errno('EISDIR');
    const entry = victimOf(found);
    const { inode } = entry;
    if (found.isDirectory) throw new Errno(inode.kind === 'directory' ? 'EISDIR' : 'ENOTDIR');
    assertMayRemove(process, found.parent, inode, false);
    remove(process, found, entry);
  },

  rmdir(process: Process, path: string): void {
    const found = lookup(process, path, 'entry');
    if (found.name === '..') throw new Errno('ENOTEMPTY');
    if (found.name === '.') throw new Errno('EINVAL');
    const entry = victimOf(found);
    assertMayRemove(process, found.parent, entry.inode, true);
    if (!entry.mounts?.length && entry.inode.entries.size > 0) throw new Errno('ENOTEMPTY');
    remove(process, found, entry);
  },

  rename(process: Process, from: string, to: string): void {
    const source = lookup(process, from, 'entry');
    const target = lookup(process, to, 'entry');
    if (source.parent.mount !== target.parent.mount) throw new Errno('EXDEV');
    if (isDots(source.name) || isDots(target.name)) throw new Errno('EBUSY');
    const entry = victimOf(source);
    const { inode } = entry;
    const isDirectory = inode.kind === 'directory';
    assertNameLength(target.name);
    // Another spelling of the same name is no other entry.
    const isRespelled = target.place?.entry === entry && entry.name !== target.name;
    const replaced = isRespelled ? undefined : target.place?.entry;
    if (isWithin(target.parent.entry, entry)) throw new Errno('EINVAL');
    if (!isDirectory && (source.isDirectory || target.isDirectory)) throw new Errno('ENOTDIR');
    if (replaced && isWithin(source.parent.entry, replaced)) throw new Errno('ENOTEMPTY');
    if (replaced?.inode === inode) return;
    assertMayRemove(process, source.parent, inode, isDirectory);
    if (replaced) assertMayRemove(process, target.parent, replaced.inode, isDirectory);
    else assertMayCreate(process, target.parent);
    const isMoved = source.parent.entry !== target.parent.entry;
    if (isDirectory && isMoved && !isAllowed(process, inode, WRITE)) throw new Errno('EACCES');
    if (entry.mounts?.length || replaced?.mounts?.length) throw new Errno('EBUSY');
    if (replaced && replaced.inode.entries.size > 0) throw new Errno('ENOTEMPTY');
    if (isDirectory && process.machine.isHeldOpen(inode)) throw new Errno('EPERM');
    move(process, entry, source, target, replaced);
  },
};

/** Whether an entry is this one or below it. */
function isWithin(entry: Entry, above: Entry): boolean {
  for (let at: Entry | undefined = entry; at; at = at.parent) if (at === above) return true;
  return false;
}

function remove(process: Process, { parent }: Found, entry: Entry): void {
  if (entry.mounts?.length) throw new Errno('EBUSY');
  const { inode, name } = entry;
  const directory = parent.entry.inode;
  directory.entries.delete(name);
  directory.modified();
  removed(entry);
  inode.storage.record([directory], () => directory.saved.entries.delete(name), inode);
  if (inode.kind !== 'directory') process.notify.inode(inode, ATTRIB);
  endIfUnused(process, entry);
  process.notify.name(directory, DELETE, name, inode);
}

function move(process: Process, entry: Entry, source: Found, target: Found, replaced?: Entry): void {
  const { inode, name } = entry;
  const from = source.parent.entry.inode;
  const to = target.parent.entry.inode;
  from.entries.delete(name);
  if (replaced) to.entries.delete(replaced.name);
  to.entries.set(target.name, entry);
  entry.parent = target.parent.entry;
  entry.name = target.name;
  if (inode.kind === 'directory') {
    from.nlink -= 1;
    to.nlink += 1;
  }
  from.modified();
  to.modified();
  inode.changed();
  if (replaced) removed(replaced);
  const save = (): void => {
    from.saved.entries.delete(name);
    if (replaced) to.saved.entries.delete(replaced.name);
    to.saved.entries.set(target.name, inode);
  };
  inode.storage.record([from, to], save, inode);
  process.notify.name(from, MOVED_FROM, name, inode);
  process.notify.name(to, MOVED_TO, target.name, inode);
  if (replaced) process.notify.inode(replaced.inode, ATTRIB);
  process.notify.inode(inode, MOVE_SELF);
  if (replaced) endIfUnused(process, replaced);
}
