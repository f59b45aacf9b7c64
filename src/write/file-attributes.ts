/** The owner and the permissions of a file that is written. */
import type { BigIntStats } from 'node:fs';

import { PERMISSIONS } from '../fs/file-identity.js';
import { inheritedMode } from './trust.js';

/** User and group IDs. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

const isId = (value: unknown): boolean => Number.isInteger(value) && (value as number) >= 0;

/** Whether a value is an `Owner`. */
export function isOwner(value: unknown): value is Owner {
  if (typeof value !== 'object' || value === null || !('uid' in value) || !('gid' in value)) return false;
  return isId(value.uid) && isId(value.gid);
}

/** Whether a value is a set of permission bits, 0 to 0o7777. */
export function isMode(value: unknown): value is number {
  return isId(value) && (value as number) <= PERMISSIONS;
}

/** The attributes of a finished file. */
export interface FileAttributes {
  readonly mode: number;
  readonly owner?: Owner | undefined;
  /** What the caller asked for must be set; anything else is set as far as possible. */
  readonly required: { readonly mode: boolean; readonly owner: boolean };
}

/** What the caller of a write asks for; see the options of the same names. */
interface WantedAttributes {
  readonly mode: number | 'keep' | undefined;
  readonly owner: Owner | undefined;
}

/** Tokens and kubeconfigs are for their owner only. */
const DEFAULT_MODE = 0o600;

/** What the caller asks for, and for the rest what the replaced file passes on. */
export function attributesFor(
  { mode, owner }: WantedAttributes,
  existing: BigIntStats | undefined,
): FileAttributes {
  return {
    mode: modeFor(mode, existing),
    owner: owner ?? (existing && { uid: Number(existing.uid), gid: Number(existing.gid) }),
    required: { mode: typeof mode === 'number', owner: owner !== undefined },
  };
}

/** The permissions alone. */
export function modeFor(mode: WantedAttributes['mode'], existing: BigIntStats | undefined): number {
  if (typeof mode === 'number') return mode;
  if (!existing) return DEFAULT_MODE;
  return mode === 'keep' ? Number(existing.mode) & PERMISSIONS : inheritedMode(existing);
}

/** Whether a new file has this mode, and the owner that `attributesFor` says. */
export function isAsWanted(
  owner: WantedAttributes['owner'],
  mode: number,
  existing: BigIntStats | undefined,
  created: BigIntStats,
): boolean {
  if ((Number(created.mode) & PERMISSIONS) !== mode) return false;
  if (owner) return hasOwner(owner, created);
  return !existing || (created.uid === existing.uid && created.gid === existing.gid);
}

/** Whether a file already has the attributes that the caller asks for. */
export function hasAttributes({ mode, owner }: WantedAttributes, stat: BigIntStats): boolean {
  if (typeof mode === 'number' && (Number(stat.mode) & PERMISSIONS) !== mode) return false;
  return !owner || hasOwner(owner, stat);
}

/** Whether a file belongs to this user and group. */
export function hasOwner(owner: Owner, { uid, gid }: BigIntStats): boolean {
  return uid === BigInt(owner.uid) && gid === BigInt(owner.gid);
}
