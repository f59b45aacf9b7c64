/** The permission bits of a file. */
import type { Option } from './options.js';

/** The bits of a mode that are not the file type. */
export const PERMISSIONS = 0o7777;

/** Usual modes whose value, in decimal, also has octal digits only: 0o644 is 420. */
const USUAL: readonly number[] = [
  ...[0o400, 0o500, 0o544, 0o550, 0o555, 0o640, 0o644, 0o660, 0o664, 0o710, 0o711, 0o770, 0o777],
  ...[0o1777, 0o2750, 0o2755, 0o2775, 0o4755],
];

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

/** Whether octal digits were written as a decimal number: 644 is 0o1204. One digit is the same in both. */
function isDecimal(value: unknown): value is number {
  return typeof value === 'number' && /^[0-7]{2,4}$/.test(String(value)) && !USUAL.includes(value);
}
