import { staleMountReason } from '../fs/mount-table.js';
import type { FileSystem } from '../core/file-system.js';
import type { Found } from '../fs/observation.js';
import { runAsync } from '../fs/effects.js';
import type { ChangeCause } from './change.js';

/** Mounts give no hint, so their table is read only when nothing else was the reason to look. */
const OCCASIONS: readonly ChangeCause[] = ['start', 'restart', 'resync'];

/** Finds out whether the target is mounted so that it can never change, once for each place it is found at. */
export class MountExamination {
  readonly #fs: FileSystem;
  #examined: string | undefined;

  constructor(fs: FileSystem) {
    this.#fs = fs;
  }

  /** What is wrong with the mount, in words, or that nothing is; no promise when that was told before. */
  examine({ snapshot, files }: Found, cause: ChangeCause): Promise<string | undefined> | undefined {
    if (!OCCASIONS.includes(cause) || snapshot.kind === 'group') return undefined;
    const inodes = snapshot.kind === 'file' ? [...files.values()].map(({ inode }) => inode).join() : '';
    const place = `${snapshot.realPath} ${inodes}`;
    if (place === this.#examined) return undefined;
    this.#examined = place;
    const kind = snapshot.kind === 'file' ? 'file' : 'directory';
    return runAsync(staleMountReason(snapshot.realPath, kind), this.#fs);
  }
}
