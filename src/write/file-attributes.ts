/** The owner and the permissions of a file that is written. */
import type { BigIntStats } from 'node:fs';

import { PERMISSIONS } from '../core/options/mode.js';
import { isChosenByOthers, isNobody } from './trust.js';

/** User and group IDs. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** Tokens and kubeconfigs are for their owner only. */
export const PRIVATE_MODE = 0o600;

/** The largest user or group ID. The number after it means "leave unchanged" in `chown(2)`. */
const MAX_ID = 2 ** 32 - 2;

function isId(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_ID;
}

/** Whether a value is an `Owner`. */
export function isOwner(value: unknown): value is Owner {
  if (typeof value !== 'object' || value === null || !('uid' in value) || !('gid' in value)) return false;
  return isId(value.uid) && isId(value.gid);
}

/** The attributes of a finished file. */
export interface FileAttributes {
  readonly mode: number;
  readonly owner: Owner | undefined;
  /** Whether a failure to set it is an error, because the caller asked for it. */
  readonly required: { readonly mode: boolean; readonly owner: boolean };
}

/** What the caller of a write asks for; see the options of the same names. */
interface WantedAttributes {
  readonly mode: number | 'keep' | undefined;
  readonly owner: Owner | undefined;
}

/** What the caller asks for; for the rest, what the replaced file passes on. */
export function attributesFor(
  { mode, owner }: WantedAttributes,
  existing: BigIntStats | undefined,
  directory: BigIntStats,
): FileAttributes {
  const inherited = existing && inheritedOwner(existing);
  return {
    mode:
      typeof mode === 'number'
        ? mode
        : inheritedMode(existing, directory, mode === 'keep', owner ?? inherited),
    owner: owner ?? inherited,
    required: { mode: typeof mode === 'number', owner: owner !== undefined },
  };
}

/** `chown(2)`: leave this one as it is. */
export const KEEP_ID = -1;

/** The owner that a file passes on. An id that stands for several users or groups is not one. */
function inheritedOwner({ uid, gid }: BigIntStats): Owner {
  return {
    uid: isNobody('uid', uid) ? KEEP_ID : Number(uid),
    gid: isNobody('gid', gid) ? KEEP_ID : Number(gid),
  };
}

/**
 * The permissions that a file passes on to the one that replaces it. With an ACL, the group bits are the mask of the
 * ACL: the most that it grants to anybody, not what it grants to the group. Node.js cannot read ACLs, so the group bits
 * are kept only on request.
 */
function inheritedMode(
  existing: BigIntStats | undefined,
  directory: BigIntStats,
  keepsGroup: boolean,
  owner: Owner | undefined,
): number {
  if (!existing) return PRIVATE_MODE;
  const isKnown = owner?.uid !== KEEP_ID && owner?.gid !== KEEP_ID;
  // Set-id bits are for that owner and group.
  const mode = Number(existing.mode) & (isKnown ? PERMISSIONS : 0o777);
  if (isChosenByOthers(directory)) return mode & PRIVATE_MODE;
  return keepsGroup && owner?.gid !== KEEP_ID ? mode : withoutGroup(mode);
}

/** These permissions, reduced for the group to those that everybody has. */
export function withoutGroup(mode: number): number {
  return (mode & ~0o070) | (mode & ((mode & 0o007) << 3));
}

/** Whether a file already has the attributes that the caller asks for. */
export function hasAttributes({ mode, owner }: WantedAttributes, stat: BigIntStats): boolean {
  if (typeof mode === 'number' && (Number(stat.mode) & PERMISSIONS) !== mode) return false;
  return !owner || hasOwner(owner, stat);
}

/** Whether two files look the same, without what is in them. */
export function haveSameAttributes(one: BigIntStats, other: BigIntStats | undefined): boolean {
  return one.mode === other?.mode && one.uid === other.uid && one.gid === other.gid;
}

/** Whether a file belongs to this user and group. */
export function hasOwner(owner: Owner, { uid, gid }: BigIntStats): boolean {
  const isSame = (wanted: number, id: bigint): boolean => wanted === KEEP_ID || id === BigInt(wanted);
  return isSame(owner.uid, uid) && isSame(owner.gid, gid);
}
