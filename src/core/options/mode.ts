/** The permission bits of a file. */

/** Completes "must be …". */
export const A_MODE = 'an integer from 0 to 0o7777, in octal (0o644, not 644)';

/** The bits of a mode that are not the file type. */
export const PERMISSIONS = 0o7777;

/** Modes whose octal digits were written as a decimal number: 644 is 0o1204, 400 is 0o620. Nobody asks for these. */
const DECIMAL = [400, 440, 444, 600, 640, 644, 660, 664, 666, 700, 750, 755, 770, 775, 777];

/** Whether a value is a set of permission bits, and was not meant to be another. */
export function isMode(value: unknown): value is number {
  if (!Number.isInteger(value) || DECIMAL.includes(value as number)) return false;
  return (value as number) >= 0 && (value as number) <= PERMISSIONS;
}
