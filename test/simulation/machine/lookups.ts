/** The calls that look something up by its path. */
import { pathForCall } from '../../../src/core/ports/platform-path.js';
import { Errno } from './errors.js';
import { DirectoryEntry, type Stat } from './inode.js';
import { assertMayFollow, existing, isAllowed, lookup, READ } from './lookup.js';
import { pathOf } from './mounts.js';
import type { Process } from './process.js';

/** As `statfs` tells the types of file systems. */
const MAGIC: Readonly<Record<string, number>> = {
  ext4: 0xef53,
  btrfs: 0x9123683e,
  xfs: 0x58465342,
  tmpfs: 0x01021994,
  overlay: 0x794c7630,
  nfs4: 0x6969,
  fuse: 0x65735546,
};

const bytesOf = (name: string): Buffer => Buffer.from(pathForCall(name));

/** As Node.js decodes it. */
export const lossy = (name: string): string => (name.isWellFormed() ? name : bytesOf(name).toString());

interface ListingOptions {
  readonly withFileTypes?: boolean;
  readonly encoding?: string;
}

export const lookupCalls = {
  lstat(process: Process, path: string, options?: { readonly throwIfNoEntry?: boolean }): Stat | undefined {
    try {
      const found = lookup(process, path, 'keep');
      if (!found.place && options?.throwIfNoEntry === false) return undefined;
      const { inode } = existing(found).entry;
      if (inode.storage.type.startsWith('fuse')) {
        // The kernel has asked for the name. Now it asks for the attributes of what was there.
        process.enter('lstat', path);
        if (inode.nlink === 0) throw new Errno('ENOENT');
      }
      return inode.stat;
    } catch (error) {
      const isMissing = error instanceof Errno && error.code === 'ENOENT';
      if (isMissing && options?.throwIfNoEntry === false) return undefined;
      throw error;
    }
  },

  stat(process: Process, path: string): Stat {
    return existing(lookup(process, path, 'follow')).entry.inode.stat;
  },

  readlink(process: Process, path: string, encoding?: string): string | Buffer {
    const descriptor = /^\/proc\/self\/fd\/(\d+)$/.exec(path);
    let target: string;
    if (descriptor) target = pathOf(process.descriptorPlace(Number(descriptor[1])));
    else {
      const { inode } = existing(lookup(process, path, 'keep')).entry;
      if (inode.kind !== 'link') throw new Errno('EINVAL');
      if (inode.leadsTo) assertMayFollow(process, inode);
      ({ target } = inode);
    }
    return encoding === 'buffer' ? bytesOf(target) : lossy(target);
  },

  readdir(
    process: Process,
    path: string,
    { withFileTypes, encoding }: ListingOptions = {},
  ): (string | Buffer | DirectoryEntry<string | Buffer>)[] {
    const { inode } = existing(lookup(process, path, 'follow')).entry;
    if (inode.kind !== 'directory') throw new Errno('ENOTDIR');
    if (!isAllowed(process, inode, READ)) throw new Errno('EACCES');
    const entries = new Map(inode.entries);
    // A rename gives an entry a new place, behind the end of a listing that has begun.
    if (inode.storage.type === 'btrfs') process.enter('readdir', path);
    const names = [...entries.keys()].filter((name) => inode.entries.get(name) === entries.get(name));
    if (names.length < entries.size) process.missed += 1;
    return names.sort().map((name) => {
      const shown = encoding === 'buffer' ? bytesOf(name) : lossy(name);
      const kind = entries.get(name)?.inode.kind ?? 'file';
      return withFileTypes === true ? new DirectoryEntry(shown, kind) : shown;
    });
  },

  statfs(process: Process, path: string): { readonly type: number } {
    const { type } = existing(lookup(process, path, 'follow')).mount.storage;
    return { type: MAGIC[type.split('.')[0] ?? ''] ?? 0 };
  },
};
