/**
 * Names of unfinished files and links. Each identifies its owner, so that another process can determine whether it will
 * still be finished:
 *
 *     .rw-<boot>.<namespace>.<pid>.<started>.<random>.tmp          a file
 *     ..data_tmp-<boot>.<namespace>.<pid>.<started>.<random>.tmp   the next `..data` link of a volume
 *
 * The length does not depend on the name of the target, which may itself be as long as a name can be.
 */

import { basename } from 'node:path';

import { ProcessIdentifier, type HasEnded, type ProcessIdentity } from './process-identity.js';
import { call, type Effects } from '../fs/effects.js';
import type { HeldDirectory } from './held-directory.js';
import { ifExists, tryUnlink } from './tolerated-failures.js';

const FILE_PREFIX = '.rw-';
const LINK_PREFIX = '..data_tmp-';
const SUFFIX = '.tmp';

/** The owner, where a process cannot be identified. */
const UNKNOWN_OWNER = '0.0.0.0';

const PATTERN =
  /^(?:\.rw-|\.\.data_tmp-)([0-9a-f]{1,16})\.([0-9a-z_]+)\.([0-9a-z]+)\.([0-9a-z]+)\.[0-9a-f]{32}\.tmp$/;

/**
 * When an unfinished file whose owner cannot be looked up (another container, another node) counts as abandoned.
 * Running writers touch theirs at least every `RENEWAL_MS`. A day covers machines that are suspended overnight, and
 * bounds what a crash loop can leave behind.
 */
const ABANDONED_AFTER_MS = 24 * 3600 * 1000;

/** How often a running writer that waits for its data touches its file, ms. */
export const RENEWAL_MS = 3600 * 1000;

/** The processes of this system. The only state is the identity of this process, which never changes. */
const processes = new ProcessIdentifier();

/** This process, as it stands in names. */
let ownName: string | undefined;

/** A new name for an unfinished file, or for the next `..data` link of a volume. */
export function temporaryName(kind: 'file' | 'link', owner?: ProcessIdentity): string {
  const prefix = kind === 'file' ? FILE_PREFIX : LINK_PREFIX;
  const who = owner ? nameOf(owner) : (ownName ??= nameOf(processes.self));
  return `${prefix}${who}.${randomDigits()}${SUFFIX}`;
}

/** 128 random bits in hex: no two writers choose the same name, and nobody can create it beforehand. */
function randomDigits(): string {
  if (unused.length < DIGITS) {
    unused = Buffer.from(crypto.getRandomValues(new Uint8Array(DIGITS * 64))).toString('hex');
  }
  const digits = unused.slice(0, DIGITS);
  unused = unused.slice(DIGITS);
  return digits;
}

const DIGITS = 32;

/** Random digits that are in no name yet: producing them for one name takes as long as for a hundred. */
let unused = '';

function nameOf(owner: ProcessIdentity | undefined): string {
  return owner
    ? `${owner.boot}.${owner.namespace}.${owner.pid.toString(36)}.${owner.started}`
    : UNKNOWN_OWNER;
}

/** Whether a directory entry is an unfinished file or link of this library. Watchers should ignore it. */
export function isTemporaryName(name: string): boolean {
  return name.endsWith(SUFFIX) && PATTERN.test(name);
}

/** Whether it looks like an unfinished file. */
export function mayBePendingFile(name: string): boolean {
  return name.startsWith(FILE_PREFIX) && name.endsWith(SUFFIX);
}

/** Whether it is an unfinished file. */
export function isPendingFileName(name: string): boolean {
  return mayBePendingFile(name) && PATTERN.test(name);
}

/** Whether it is the unfinished next `..data` link of a volume. */
export function isPendingLinkName(name: string): boolean {
  return name.startsWith(LINK_PREFIX) && isTemporaryName(name);
}

/** Answers whether the owners of unfinished files have ended, for one sweep. */
export function surveyOwners(): HasEnded {
  return processes.survey();
}

/** Unfinished entries of this thread that it failed to remove, the latest last. */
const givenUp = new Set<string>();

/** If there are more of them, the first ones stay until the process has ended. */
const MAX_GIVEN_UP = 1024;

/**
 * Removes an unfinished entry. If that is not possible now, a later sweep removes it, although its owner runs.
 * Returns whether it was there, and no longer is.
 */
export function* removeUnfinished(path: string): Effects<boolean> {
  const name = basename(path);
  const outcome = yield* tryUnlink(path);
  if (outcome === 'failed') giveUp(name);
  else givenUp.delete(name);
  return outcome === 'removed';
}

/** Lets a later sweep remove an unfinished entry of ours. */
export function giveUp(name: string): void {
  if (!isTemporaryName(name)) return;
  const [oldest = name] = givenUp;
  if (givenUp.size === MAX_GIVEN_UP) givenUp.delete(oldest);
  givenUp.add(name);
}

/**
 * Whether nobody will finish an entry: its owner has ended, has given it up, or cannot be looked up and has not touched it
 * for a day; or it is gone.
 *
 * @param now the time of the file system's own clock, ns; undefined when it is not known: then age does not count.
 */
export function* isAbandoned(
  directory: HeldDirectory,
  name: string,
  now: bigint | undefined,
  hasEnded: HasEnded,
): Effects<boolean> {
  if (givenUp.has(name)) return true;
  const owner = ownerOf(name);
  const ended = owner && hasEnded(owner);
  if (ended !== undefined) return ended;
  if (now === undefined) return false;
  const stat = yield* ifExists(call('lstat', directory.at(name)));
  if (!stat) return true;
  const { mtimeNs, ctimeNs } = stat;
  // A copy or `touch` can set mtime back; only the file system sets ctime.
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
