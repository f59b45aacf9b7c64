/** Which file it is, with what content and permissions, as far as its inode shows it. */
import type { BigIntStats } from 'node:fs';

import { call, type Effects } from './effects.js';

/** Identifies a file or directory: inode numbers alone are reused immediately. */
export function identityOf({ dev, ino, birthtimeNs }: BigIntStats): string {
  // Flat, as a signature.
  return [dev, ino, birthtimeNs].join(':');
}

/** The `identityOf` the file with this signature: part of the same string. */
export function identityIn(signature: string): string {
  let end = -1;
  for (let field = 0; field < 3; field += 1) end = signature.indexOf(':', end + 1);
  return signature.slice(0, end);
}

/** The device in a signature. */
export function deviceIn(signature: string): string {
  return signature.slice(0, signature.indexOf(':'));
}

/** The `ctime` in a signature, ns, rounded as every number is: a later one never becomes an earlier one. */
export function changedAt(signature: string): number {
  return Number(signature.slice(signature.lastIndexOf(':') + 1));
}

/** The inode number in a signature, if need be rounded. */
export function inodeIn(signature: string): number {
  return Number(signature.split(':', 2)[1]);
}

/** What a signature is made of. */
export type Signed = Pick<BigIntStats, 'dev' | 'ino' | 'birthtimeNs' | 'size' | 'mtimeNs' | 'ctimeNs'>;

/** Identifies a file together with its content, as far as its timestamps show it. */
export function signatureOf({ dev, ino, birthtimeNs, size, mtimeNs, ctimeNs }: Signed): string {
  // One flat string: a template would keep each of its pieces, which takes five times the memory for every file.
  return [dev, ino, birthtimeNs, size, mtimeNs, ctimeNs].join(':');
}

/** The signature of the file at the path now; undefined if it cannot be determined. */
export function* signatureAt(path: string): Effects<string | undefined> {
  try {
    return signatureOf(yield* call('lstat', path));
  } catch {
    return undefined;
  }
}

/** The bits of a mode that are not the file type. */
export const PERMISSIONS = 0o7777;

/**
 * Whether the inode was changed after the last write: the file was renamed, linked or chmodded once it was complete. Being
 * unlinked changes the inode, too, but says nothing about the bytes.
 */
export function isFinished({ mtimeNs, ctimeNs, nlink }: BigIntStats): boolean {
  return ctimeNs > mtimeNs && nlink > 0n;
}

/** Represents the content of a file that is not read. */
export function statDigest({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `stat:${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
}
