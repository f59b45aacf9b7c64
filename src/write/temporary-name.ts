/**
 * Names of what is not finished yet. Each names its owner, so that whoever finds one can tell whether it will
 * still be finished:
 *
 *     .rw-<boot>.<namespace>.<pid>.<started>.<random>.tmp          a file
 *     ..data_tmp-<boot>.<namespace>.<pid>.<started>.<random>.tmp   the next `..data` link of a volume
 *
 * The name does not grow with the name of the target, which may itself be as long as a name can be.
 */
import { randomUUID } from 'node:crypto';

import { ProcessTable, type ProcessIdentity } from './process-identity.js';
import { call, type Effects } from '../fs/effects.js';

const FILE_PREFIX = '.rw-';
const LINK_PREFIX = '..data_tmp-';
const SUFFIX = '.tmp';

/** Owner of what a process made that cannot be identified. */
const NOBODY = '0.0.0.0';

const PATTERN =
  /^(?:\.rw-|\.\.data_tmp-)([0-9a-f]{1,16})\.([0-9a-z_]+)\.([0-9a-z]+)\.([0-9a-z]+)\.[0-9a-f]{32}\.tmp$/;

/**
 * When an unfinished file whose owner cannot be asked after (another container, another node) counts as
 * abandoned. Live writers touch theirs at least every `RENEWAL_MS`; a day covers machines that are suspended
 * overnight, and bounds what a crash loop can leave behind.
 */
export const ABANDONED_AFTER_MS = 24 * 3600 * 1000;

/** How often a live writer that waits for its data touches its file, ms. */
export const RENEWAL_MS = 3600 * 1000;

/** The processes of this machine. It holds nothing but the constant identity of this one. */
const processes = new ProcessTable();

/** A new name for an unfinished file, or for a volume's next `..data` link. */
export function temporaryName(
  kind: 'file' | 'link',
  owner: ProcessIdentity | undefined = processes.self,
): string {
  const who = owner ? `${owner.boot}.${owner.namespace}.${owner.pid.toString(36)}.${owner.started}` : NOBODY;
  const prefix = kind === 'file' ? FILE_PREFIX : LINK_PREFIX;
  // 122 random bits: two writers never meet, and nobody can prepare the name for them.
  return `${prefix}${who}.${randomUUID().replaceAll('-', '')}${SUFFIX}`;
}

/** Whether an entry of a directory is an unfinished file or link of this library. Watchers should ignore it. */
export function isTemporaryName(name: string): boolean {
  return name.endsWith(SUFFIX) && PATTERN.test(name);
}

/** Whether it is the unfinished next `..data` link of a volume. */
export function isPendingLinkName(name: string): boolean {
  return name.startsWith(LINK_PREFIX) && isTemporaryName(name);
}

/**
 * Whether nobody will finish what bears this name: its owner is gone, or cannot be known and has not touched it
 * for a day by the file system's own clock.
 *
 * @param now what that clock shows, ns; undefined when it is not known: then age says nothing.
 */
export function* isAbandoned(path: string, name: string, now: bigint | undefined): Effects<boolean> {
  const owner = ownerOf(name);
  const gone = owner && processes.isGone(owner);
  if (gone !== undefined) return gone;
  if (now === undefined) return false;
  const { mtimeNs, ctimeNs } = yield* call('lstat', path);
  // A copy or a `touch` can set mtime back; ctime only the file system sets.
  const touched = mtimeNs > ctimeNs ? mtimeNs : ctimeNs;
  return now - touched > BigInt(ABANDONED_AFTER_MS) * 1_000_000n;
}

function ownerOf(name: string): ProcessIdentity | undefined {
  const [, boot, namespace, pid, started] = PATTERN.exec(name) ?? [];
  if (boot === undefined || namespace === undefined || pid === undefined || started === undefined) {
    return undefined;
  }
  return { boot, namespace, pid: Number.parseInt(pid, 36), started };
}

/** Removes the abandoned unfinished files among the entries of a directory, as far as that is possible. */
export function* sweepFiles(directory: string, entries: readonly string[], now: bigint): Effects<void> {
  for (const name of entries) {
    if (!name.startsWith(FILE_PREFIX) || !isTemporaryName(name)) continue;
    const path = `${directory}/${name}`;
    try {
      if (yield* isAbandoned(path, name, now)) yield* call('unlink', path);
    } catch {
      // Somebody else was quicker, or it is not ours to remove.
    }
  }
}
