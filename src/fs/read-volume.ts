import { insidePath, told } from '../core/ports/platform-path.js';
import { notAVolume, TargetError } from './target-error.js';
import { checkPath, fileSystem, PORT_OPTIONS, resolveOptions } from '../core/options/options.js';
import { systemRandom } from '../core/ports/random.js';
import type { Clock } from '../core/ports/clock.js';
import { READING_CALLS, type ReadingCalls } from './calls.js';
import { stableRead } from './stable-read.js';
import type { SetSnapshot } from './snapshot.js';
import { PathTarget } from './targets/path.js';
import { READ_LIMITS } from './read-limits.js';

/** Options of {@link readVolume}. */
export interface ReadVolumeOptions {
  /** Files up to this size are read, bytes. Larger ones are compared by inode, size and timestamps. Default 1 MiB. */
  readonly maxContentBytes?: number | undefined;
  /**
   * If the files together are larger than this, only the digests of their contents are kept, bytes. Default 64
   * MiB.
   */
  readonly maxTotalBytes?: number | undefined;
  /**
   * Directories with more files than this are compared by inode, size and timestamps; contents are not read.
   * Default 16,384.
   */
  readonly maxFiles?: number | undefined;
  /** Default: `node:fs`. */
  readonly fs?: ReadingCalls | undefined;
  /** Default: the system's clock. */
  readonly clock?: Clock | undefined;
}

/**
 * Reads a volume once, without watching it: all keys come from one revision, even if the volume is swapped meanwhile.
 * In a plain directory, files may have been read at different times, and one that is written in place may be incomplete.
 *
 * ```ts
 * const { files } = await readVolume('/etc/tls');
 * server.setSecureContext({ cert: files.get('tls.crt')?.content, key: files.get('tls.key')?.content });
 * ```
 * @throws {TargetError} (rejects) when there is no volume (`ERR_TARGET_MISSING`), the path is that of a file
 * (`ERR_TARGET_PATH`), or the volume cannot be read or keeps changing (`ERR_TARGET_IO`).
 * @throws {TypeError | RangeError} (rejects) for a wrong argument.
 */
export async function readVolume(directory: string | URL, options?: ReadVolumeOptions): Promise<SetSnapshot> {
  const path = insidePath(checkPath('readVolume', 'directory', directory));
  const { fs, clock, ...limits } = resolveOptions('readVolume', options, {
    ...READ_LIMITS,
    fs: fileSystem(...READING_CALLS),
    clock: PORT_OPTIONS.clock,
  });
  const snapshot = await stableRead(new PathTarget(path, limits), { fs, clock, random: systemRandom });
  if (snapshot.kind === 'missing') {
    throw new TargetError(
      'ERR_TARGET_MISSING',
      path,
      `Cannot read the volume "${told(path)}": it does not exist`,
    );
  }
  if (snapshot.kind === 'file') throw notAVolume(path);
  return snapshot;
}
