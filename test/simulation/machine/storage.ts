/**
 * One file system: its inodes, its limits, and what of it is on the disk.
 *
 * | changes of names and attributes | reach the disk                     | `fsync` of a file or directory writes     |
 * |---------------------------------|------------------------------------|-------------------------------------------|
 * | with a journal (ext4, XFS)      | in their order                     | all changes up to the last one of it      |
 * | without (as POSIX allows)       | in the order of each directory     | the changes of names in it, or attributes |
 *
 * The content of a file reaches the disk by `fsync` of this file. What was not synced may be there after a power cut or
 * not, and content may be there in part.
 */
import { Errno } from './errors.js';
import { Entry, Inode, type Kind } from './inode.js';

interface Change {
  /** The directories whose names change, or the inode whose attributes do. */
  readonly changed: readonly Inode[];
  /** What the names stand for. */
  readonly named: Inode | undefined;
  readonly save: () => void;
}

interface StorageOptions {
  /** As in the mount table. */
  readonly type: string;
  readonly device: bigint;
  /** The time for timestamps, ns. */
  readonly stamp: () => bigint;
  readonly capacity?: number | undefined;
  readonly maxInodes?: number | undefined;
  /** Names that are equal afterwards are one name to a lookup. Default: each spelling is a name of its own. */
  readonly fold?: ((name: string) => string) | undefined;
}

export class Storage {
  readonly type: string;
  readonly device: bigint;
  readonly stamp: () => bigint;
  readonly fold: StorageOptions['fold'];
  /** Bytes of content; what is written beyond fails with ENOSPC. */
  capacity: number;
  maxInodes: number;
  root: Entry;
  hasJournal = true;
  /** How many mounts show it. */
  mounts = 0;
  /** How many descriptors are open on it. */
  opens = 0;
  #used = 0;
  #inodes = 0;
  #nextNumber = 2;
  #freeNumbers: number[] = [];
  /** When the last link with each number was made, ns. */
  readonly #links = new Map<number, bigint>();
  #journal: Change[] = [];

  constructor({ type, device, stamp, capacity = Infinity, maxInodes = Infinity, fold }: StorageOptions) {
    this.fold = fold;
    this.type = type;
    this.device = device;
    this.stamp = stamp;
    this.capacity = capacity;
    this.maxInodes = maxInodes;
    this.root = new Entry('', undefined, this.create('directory', 0o755, 0, 0));
    this.root.inode.nlink = 2;
  }

  /**
   * A new inode, with the number of one that was freed if there is one. tmpfs does not reuse numbers. No link gets that of
   * another link that was made in the same tick: nothing would tell the two apart.
   */
  create(kind: Kind, mode: number, uid: number, gid: number): Inode {
    if (this.#inodes >= this.maxInodes) throw new Errno('ENOSPC');
    this.#inodes += 1;
    const inode = new Inode(this, kind, mode, uid, gid);
    const isTwin = (of: number): boolean => kind === 'link' && this.#links.get(of) === inode.birthtimeNs;
    const at = this.#freeNumbers.findLastIndex((of) => !isTwin(of));
    const [number = this.#nextNumber++] = at < 0 ? [] : this.#freeNumbers.splice(at, 1);
    inode.number = number;
    if (kind === 'link') this.#links.set(number, inode.birthtimeNs);
    return inode;
  }

  /** Frees an inode that has neither a name nor an open descriptor. */
  free(inode: Inode): void {
    this.#inodes -= 1;
    this.resize(inode, 0);
    if (this.type !== 'tmpfs') this.#freeNumbers.push(inode.number);
  }

  /** Makes room for this much content. Returns how much of it there is room for. @throws {Errno} ENOSPC if there is none. */
  resize(inode: Inode, size: number): number {
    const granted = Math.min(size, this.capacity - this.#used + inode.bytes.length);
    if (granted < size && granted <= inode.bytes.length) throw new Errno('ENOSPC');
    this.#used += granted - inode.bytes.length;
    return granted;
  }

  /** Notes a change of names or attributes. @param save makes it on the disk. */
  record(changed: readonly Inode[], save: () => void, named?: Inode): void {
    if (this.type !== 'tmpfs') this.#journal.push({ changed, named, save });
  }

  /** As `fsync`. */
  sync(inode: Inode): void {
    inode.saved.bytes = inode.bytes;
    if (this.hasJournal) {
      const isOf = ({ changed, named }: Change): boolean => named === inode || changed.includes(inode);
      this.#commit(this.#journal.findLastIndex(isOf) + 1);
      return;
    }
    for (const { changed, save } of this.#journal) if (changed.includes(inode)) save();
    this.#journal = this.#journal.filter(({ changed }) => !changed.includes(inode));
  }

  /** As `sync`, for names; the content of files has to be synced by itself. */
  syncNames(): void {
    this.#commit(this.#journal.length);
  }

  /** Loses what was not synced. tmpfs loses everything. */
  powerCut(random: () => number): void {
    if (this.hasJournal) this.#commit(Math.floor(random() * (this.#journal.length + 1)));
    const lost = new Set<Inode>();
    for (const { changed, save } of this.hasJournal ? [] : this.#journal) {
      if (random() < 0.3) for (const inode of changed) lost.add(inode);
      if (!changed.some((inode) => lost.has(inode))) save();
    }
    this.#journal = [];
    this.#used = 0;
    this.#inodes = 0;
    this.root = new Entry('', undefined, this.root.inode);
    const seen = new Set<Inode>();
    this.#restore(this.root, random, seen);
  }

  #restore(entry: Entry, random: () => number, seen: Set<Inode>): void {
    const { inode } = entry;
    const { saved, entries } = inode;
    if (!seen.has(inode)) {
      seen.add(inode);
      this.#inodes += 1;
      const bytes = contentAfterCut(saved.bytes, inode.bytes, random);
      this.#used += bytes.length;
      inode.nlink = inode.kind === 'directory' ? 2 : 0;
      Object.assign(inode, {
        mode: saved.mode,
        uid: saved.uid,
        gid: saved.gid,
        opens: 0,
        watches: [],
        bytes,
      });
      saved.bytes = bytes;
    }
    if (inode.kind !== 'directory') inode.nlink += 1;
    else if (entry.parent) entry.parent.inode.nlink += 1;
    entries.clear();
    for (const [name, child] of saved.entries) {
      const below = new Entry(name, entry, child);
      entries.set(name, below);
      this.#restore(below, random, seen);
    }
  }

  #commit(count: number): void {
    for (const { save } of this.#journal.splice(0, count)) save();
  }
}

/** Blocks of a file are written in any order; those of which only the size was written are zeros. */
function contentAfterCut(saved: Buffer, current: Buffer, random: () => number): Buffer {
  if (saved === current) return saved;
  const at = Math.floor(random() * (current.length + 1));
  switch (Math.floor(random() * 5)) {
    case 0:
      return saved;
    case 1:
      return current;
    case 2:
      return current.subarray(0, at);
    case 3:
      return Buffer.alloc(current.length);
    default:
      return Buffer.concat([current.subarray(0, at), saved.subarray(at)]);
  }
}
