import { readMounts, staleMountIn, type Mount } from '../fs/mount-table.js';
import type { FileSystem } from '../core/file-system.js';
import type { Found } from '../fs/observation.js';
import { runAsync } from '../fs/effects.js';
import type { ChangeCause } from './change.js';

/** Mounts cause no events, so the mount table is read only if the check was not caused by an event. */
const CAUSES: readonly ChangeCause[] = ['start', 'restart', 'resync'];

/**
 * Finds out whether the target is mounted in a way that never shows an update, once for each place where it is
 * found.
 */
export class MountExamination {
  readonly #fs: FileSystem;
  /** Where it was examined: the path, and of a file the inode. */
  #realPath: string | undefined;
  #inode: string | undefined;

  constructor(fs: FileSystem) {
    this.#fs = fs;
  }

  /** What is wrong with the mount, if anything; undefined instead of a promise if that is known already. */
  examine({ snapshot, files }: Found, cause: ChangeCause): Promise<string | undefined> | undefined {
    if (!CAUSES.includes(cause) || snapshot.kind === 'group') return undefined;
    const { realPath } = snapshot;
    const [file] = snapshot.kind === 'file' ? files.values() : [];
    if (realPath === this.#realPath && file?.inode === this.#inode) return undefined;
    this.#realPath = realPath;
    this.#inode = file?.inode;
    const kind = snapshot.kind === 'file' ? 'file' : 'directory';
    return mountsFrom(this.#fs).then((mounts) => staleMountIn(mounts, realPath, kind)?.message);
  }
}

type Reading = Promise<readonly Mount[]>;

/** The reading of the mount table that is under way, and the one that follows it. */
interface Readings {
  readonly current: Reading;
  next: Reading | undefined;
}

const readings = new WeakMap<FileSystem, Readings>();

/** The mounts, read after this call. Calls during a reading wait for the next one, which they share. */
function mountsFrom(fs: FileSystem): Reading {
  const underWay = readings.get(fs);
  if (underWay) return (underWay.next ??= underWay.current.then(() => readNow(fs)));
  return readNow(fs);
}

function readNow(fs: FileSystem): Reading {
  const reading: Readings = { current: runAsync(readMounts(), fs), next: undefined };
  readings.set(fs, reading);
  const end = (): void => {
    if (!reading.next) readings.delete(fs);
  };
  reading.current.then(end, end);
  return reading.current;
}
