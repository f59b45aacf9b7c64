/** The meaning of the `code` of a failed system call. */
import { constants } from 'node:os';

/** The `code` of Node's permission model (`node --permission`). */
const ACCESS_DENIED = 'ERR_ACCESS_DENIED';

/** The `code` of an error of Node.js. Undefined for a `ListenerError`: a function of the program failed, not a call. */
export function errnoOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  if ('name' in error && error.name === 'ListenerError') return undefined;
  // Errors of Deno's permission model have a name but no code.
  if ('name' in error && error.name === 'NotCapable') return ACCESS_DENIED;
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Names of errors by their numbers. */
const names = new Map(Object.entries(constants.errno).map(([name, number]) => [-number, name]));

/**
 * The error of a system call, with the system's name if Node.js has none: it reports ESTALE and EDQUOT as
 * `Unknown system error -116` or `UNKNOWN`.
 */
export function withErrno(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code, errno = 0 } = error as NodeJS.ErrnoException;
  const name = names.get(errno);
  if (name === undefined || (code !== 'UNKNOWN' && !code?.startsWith('Unknown system error'))) return error;
  const message = error.message.replace(`${code}: `, `${name}: `);
  return Object.assign(error, { code: name, message });
}

/** Whether permission was denied, by the file system or by the permission model of the runtime. */
export function isDenied(error: unknown): boolean {
  return ['EACCES', 'EPERM', ACCESS_DENIED].includes(errnoOf(error) ?? '');
}

/** Whether the process or the system ran out of descriptors or memory, which says nothing about the path. */
export function isExhausted(error: unknown): boolean {
  return ['EMFILE', 'ENFILE', 'ENOMEM'].includes(errnoOf(error) ?? '');
}

/** Whether a call failed because the path has changed and must be resolved again. */
export function hasMoved(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'ESTALE', 'ELOOP'].includes(errnoOf(error) ?? '');
}
