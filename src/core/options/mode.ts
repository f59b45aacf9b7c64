/** The permission bits of a file. */
import type { Option } from './options.js';

/** The bits of a mode that are not the file type. */
export const PERMISSIONS = 0o7777;

/** Usual modes whose value looks like another mode in decimal: 320 and 511. */
const USUAL: readonly number[] = [0o500, 0o777];

/** Whether a value is a set of permission bits. */
export function isMode(value: unknown): value is number {
  const isInRange = Number.isInteger(value) && (value as number) >= 0 && (value as number) <= PERMISSIONS;
  return isInRange && !isDecimal(value);
}

/** Completes "must be …". */
export function aMode(value: unknown): string {
  const digits = isDecimal(value) ? value : 644;
  return `an integer from 0 to 0o7777, in octal (0o${digits}, not ${digits})`;
}

export function modeOption<T extends number | string | undefined>(fallback: T, word?: T): Option<number | T> {
  const or = word === undefined ? '' : `, or "${word}"`;
  const isAccepted = (value: unknown): boolean => isMode(value) || (word !== undefined && value === word);
  return {
    fallback,
    refuse: (value) => (isAccepted(value) ? undefined : { kind: 'type', wanted: aMode(value) + or }),
  };
}

/**
 * Whether octal digits were written as a decimal number: 644 is 0o1204. Either the digits are a mode that people write,
 * or the bits are none: nobody gives others what the owner lacks. One digit is the same in both.
 */
function isDecimal(value: unknown): value is number {
  if (typeof value !== 'number' || !/^[0-7]{2,4}$/.test(String(value)) || USUAL.includes(value)) return false;
  const [owner, group, others] = bitsOf(Number.parseInt(String(value), 8));
  const isWritten = owner > 0 && isWithin(group, owner) && isWithin(others, group);
  const [ofOwner, ofGroup, ofOthers] = bitsOf(value);
  return isWritten || !isWithin(ofGroup | ofOthers, ofOwner);
}

function bitsOf(mode: number): [owner: number, group: number, others: number] {
  return [(mode >> 6) & 7, (mode >> 3) & 7, mode & 7];
}

function isWithin(bits: number, all: number): boolean {
  return (bits & ~all) === 0;
}
