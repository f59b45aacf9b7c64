import { dirname } from 'node:path';

import type { FileSystem } from '../core/file-system.js';
import { DATA_LINK } from '../fs/volume-layout.js';
import type { Snapshot } from '../fs/snapshot.js';
import type { Change } from './change.js';

/**
 * The time since a change was made, by the file system's timestamp of the swap of `..data` or of the file, ms.
 * Undefined for what was there at the start, and for sets of files that are no volume, which have no single moment.
 *
 * @param now epoch ms.
 */
export function changeDelayMs(
  { cause, current }: Change,
  fs: FileSystem['sync'],
  now: number,
): number | undefined {
  const stamped = cause === 'start' ? undefined : stampedPath(current);
  if (stamped === undefined || !fs) return undefined;
  try {
    return Math.max(0, now - Number(fs.lstat(stamped).ctimeNs / 1_000n) / 1_000);
  } catch {
    return undefined; // It has moved again.
  }
}

/** The path whose timestamp was set by the change. */
function stampedPath(current: Snapshot): string | undefined {
  if (current.kind === 'missing') return undefined;
  const { kind, realPath, revision } = current;
  if (revision === undefined) return kind === 'file' ? realPath : undefined;
  // A link that is renamed over another one is stamped.
  const end = realPath.lastIndexOf(`/${revision}`);
  return end < 0 ? undefined : `${dirname(`${realPath.slice(0, end)}/_`)}/${DATA_LINK}`;
}
