/**
 * What shows, for all watchers of keys of one volume, that links and files are as they were found. To read its link and
 * examine its file takes two calls of each watcher. The directories that hold them take one `lstat` each for all
 * watchers, and their timestamps change with every entry:
 *
 * | since links and file were found to be the same                 | shows in                                                |
 * |-----------------------------------------------------------------|---------------------------------------------------------|
 * | a link was replaced (whatever its target), created or removed   | the timestamps of the volume; a link cannot be changed  |
 * | `..data` was                                                    | the same; also its target, which is read each time      |
 * | a file of the revision was replaced, created or removed         | the timestamps of the revision                          |
 * | another directory is in place of the volume or of the revision: | device, inode or birth time of that directory, or in a  |
 * | it, or one above it, was renamed, removed or mounted over       | call that fails                                         |
 * | one of them was moved, and a link to it is in its place         | nothing, nor does it matter: `/.` asks for what is      |
 * |                                                                 | behind the link                                         |
 * | a link outside the volume was replaced                          | not here: these links are read each time                |
 * | a file was written in place or mounted over, or replaced in a   | not here: each file is examined when it is its turn     |
 * | directory below the revision                                    | (`Turn.slices`), and nobody writes into a revision      |
 *
 * Two changes within one tick of the clock from which a file system takes its timestamps leave the same ones. So it
 * counts only if it is proven when it is read that later changes will differ:
 *
 * | the `ctime` of these directories is                             | then                                                    |
 * |-----------------------------------------------------------------|---------------------------------------------------------|
 * | more than `COARSEST_TIMESTAMP_MS` ago                           | proven                                                  |
 * | recent, or in the future because the clock was set back         | not proven: each link and file is examined, now and in  |
 * |                                                                 | the first turn in which it is proven                    |
 * | from a file system of the user, whose clock is not known        | the same, each time                                     |
 * | from a server                                                   | nothing there is asked synchronously, so not here       |
 * | in a tick that the clock, set back, passes again between two    | not noticed: found when it is the turn of the file and  |
 * | resyncs, and there was a change in both                         | its links                                               |
 *
 * The signature is read before the links and the file that it stands for, so a change in between differs from it, too.
 */
import type { FileSystemCalls } from '../core/file-system.js';
import { signatureOf } from './file-identity.js';
import type { VolumeSignature } from './observation.js';
import { isPast } from './timestamp-proof.js';
import { isRevisionName } from './volume-layout.js';

/**
 * Throws what the calls throw.
 * @param link the `..data` link of the volume.
 * @param timestampMs see `Moment`; read before this call.
 */
export function volumeSignature(
  link: string,
  timestampMs: number | undefined,
  calls: FileSystemCalls,
): VolumeSignature {
  const directory = link.slice(0, link.lastIndexOf('/') + 1);
  const volume = signatureOf(calls.lstat(`${directory}.`));
  const revision = calls.readlink(link);
  const isPublished = isRevisionName(revision);
  if (timestampMs === undefined) return { revision, isPublished, proven: undefined };
  const inside = signatureOf(calls.lstat(`${directory}${revision}/.`));
  const isProven = isPast(volume, timestampMs) && isPast(inside, timestampMs);
  return { revision, isPublished, proven: isProven ? `${volume}\n${inside}` : undefined };
}
