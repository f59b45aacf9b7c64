/** What is on a file system: inodes, and the entries of directories that name them. */
import type { Mount, Place } from './mounts.js';
import type { Storage } from './storage.js';
import type { Watch } from './inotify.js';

export type Kind = 'file' | 'directory' | 'link' | 'pipe';

const FORMATS: Readonly<Record<Kind, number>> = {
  file: 0o100_000,
  directory: 0o040_000,
  link: 0o120_000,
  pipe: 0o010_000,
};

export const SET_GROUP = 0o2000;
export const STICKY = 0o1000;

/** The size of a directory, for each so many of its entries, as ext4 has it. */
const [DIRECTORY_BYTES, ENTRIES] = [4096, 200];

/** The device of `/proc`. */
const PROC = 0x15n;

const EMPTY: Buffer = Buffer.alloc(0);

/** What the disk holds of an inode. The rest is in memory only. */
export interface Saved {
  readonly entries: Map<string, Inode>;
  mode: number;
  uid: number;
  gid: number;
  bytes: Buffer;
}

export class Inode {
  /** By name; of a directory only. */
  readonly entries = new Map<string, Entry>();
  /** Replaced by each write, never changed. */
  bytes = EMPTY;
  target = '';
  /** Of a link in `/proc` that leads to an object instead of a path. */
  leadsTo: Place | undefined;
  /** Whether it is in `/proc`: without a size, on a device of its own, and made when it is first asked for. */
  isOfProc = false;
  nlink = 0;
  /** How many descriptors are open. */
  opens = 0;
  /** It has no name any more, or none that is not open. */
  isEnded = false;
  birthtimeNs: bigint;
  mtimeNs: bigint;
  ctimeNs: bigint;
  watches: Watch[] = [];
  #stat: Stat | undefined;
  readonly saved: Saved;

  readonly storage: Storage;
  readonly kind: Kind;
  number = 0;
  /** Without the format. */
  mode: number;
  uid: number;
  gid: number;

  constructor(storage: Storage, kind: Kind, mode: number, uid: number, gid: number) {
    this.storage = storage;
    this.kind = kind;
    this.mode = mode;
    this.uid = uid;
    this.gid = gid;
    this.birthtimeNs = this.mtimeNs = this.ctimeNs = storage.stamp();
    this.saved = { entries: new Map(), mode, uid, gid, bytes: EMPTY };
  }

  get size(): number {
    if (this.kind === 'directory') return DIRECTORY_BYTES * Math.ceil((this.entries.size + 1) / ENTRIES);
    if (this.isOfProc) return 0;
    return this.kind === 'link' ? Buffer.byteLength(this.target) : this.bytes.length;
  }

  /** As `lstat` tells. The same object until something changes. */
  get stat(): Stat {
    if (this.isOfProc && !this.#stat) this.birthtimeNs = this.mtimeNs = this.ctimeNs = this.storage.stamp();
    if (!this.#stat?.isOf(this)) this.#stat = new Stat(this);
    return this.#stat;
  }

  /** What a lookup of this name finds, also by another spelling of it where names are folded. */
  find(name: string): Entry | undefined {
    const exact = this.entries.get(name);
    const { fold } = this.storage;
    if (exact || !fold) return exact;
    const folded = fold(name);
    return [...this.entries.values()].find((entry) => fold(entry.name) === folded);
  }

  /** Its content or its entries have changed. */
  modified(): void {
    this.mtimeNs = this.ctimeNs = this.storage.stamp();
  }

  /** Anything else about it has changed. */
  changed(): void {
    this.ctimeNs = this.storage.stamp();
  }
}

/** A name in a directory, as the kernel remembers it: it moves with `rename`, and outlives `unlink` while it is open. */
export class Entry {
  isRemoved = false;
  /** How many descriptors were opened through it. */
  opens = 0;
  /** What is mounted here, the newest last. */
  mounts: Mount[] | undefined;

  name: string;
  /** Undefined for the root of a file system. */
  parent: Entry | undefined;
  readonly inode: Inode;

  constructor(name: string, parent: Entry | undefined, inode: Inode) {
    this.name = name;
    this.parent = parent;
    this.inode = inode;
  }
}

/** The kind of something, as `Stats` and `Dirent` tell it. */
class Kinds {
  readonly kind: Kind;

  constructor(kind: Kind) {
    this.kind = kind;
  }
  isFile(): boolean {
    return this.kind === 'file';
  }
  isDirectory(): boolean {
    return this.kind === 'directory';
  }
  isSymbolicLink(): boolean {
    return this.kind === 'link';
  }
  isFIFO(): boolean {
    return this.kind === 'pipe';
  }
  isSocket(): boolean {
    return false;
  }
  isBlockDevice(): boolean {
    return false;
  }
  isCharacterDevice(): boolean {
    return false;
  }
}

export class Stat extends Kinds {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly mode: bigint;
  readonly nlink: bigint;
  readonly uid: bigint;
  readonly gid: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  readonly birthtimeNs: bigint;
  readonly #mode: number;
  readonly #nlink: number;
  readonly #uid: number;
  readonly #gid: number;
  readonly #size: number;

  constructor(inode: Inode) {
    super(inode.kind);
    this.#mode = inode.mode;
    this.#nlink = inode.nlink;
    this.#uid = inode.uid;
    this.#gid = inode.gid;
    this.#size = inode.size;
    this.dev = inode.isOfProc ? PROC : inode.storage.device;
    this.ino = BigInt(inode.number);
    this.mode = BigInt(FORMATS[inode.kind] | inode.mode);
    this.nlink = BigInt(inode.nlink);
    this.uid = BigInt(inode.uid);
    this.gid = BigInt(inode.gid);
    this.size = BigInt(inode.size);
    this.mtimeNs = inode.mtimeNs;
    this.ctimeNs = inode.ctimeNs;
    this.birthtimeNs = inode.birthtimeNs;
  }
  /** Whether an inode is still as it was. */
  isOf({ mode, nlink, uid, gid, size, mtimeNs, ctimeNs }: Inode): boolean {
    const isSame = mtimeNs === this.mtimeNs && ctimeNs === this.ctimeNs && size === this.#size;
    return isSame && nlink === this.#nlink && mode === this.#mode && uid === this.#uid && gid === this.#gid;
  }
  get mtimeMs(): bigint {
    return this.mtimeNs / 1_000_000n;
  }
  get ctimeMs(): bigint {
    return this.ctimeNs / 1_000_000n;
  }
}

export class DirectoryEntry<Name> extends Kinds {
  readonly name: Name;

  constructor(name: Name, kind: Kind) {
    super(kind);
    this.name = name;
  }
}
