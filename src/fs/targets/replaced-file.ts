/** A file that was put in the place of a known one, as by `rename`, read at once. */
import type { FileSystemCalls } from '../../core/file-system.js';
import { readFileNow } from '../file-reading.js';
import { MAX_BYTES_AT_ONCE, type SeenFile } from '../observation.js';

/** The smallest page of memory, bytes: the kernel copies less than that in one step. */
const PAGE_BYTES = 4096;

/**
 * The file at this place if it is another one than the known one, and complete as far as that shows in it. Undefined
 * also if it is larger than `maxContentBytes`, or cannot be read.
 * @param inode identifies the known one.
 */
export function readReplacedFile(
  place: Parameters<typeof readFileNow>[0],
  maxContentBytes: number,
  inode: string,
  calls: FileSystemCalls,
): SeenFile | undefined {
  const file = readFileNow(place, Math.min(maxContentBytes, MAX_BYTES_AT_ONCE), calls, undefined, inode);
  return file && isWhole(file) ? file : undefined;
}

/**
 * Whether a new file cannot be one that was created in place and is being written by a call that has not returned, for
 * which there is no event yet. An empty file may be about to be written.
 */
function isWhole({ finished, snapshot: { size } }: SeenFile): boolean {
  return size > 0 && (finished || size < PAGE_BYTES);
}
