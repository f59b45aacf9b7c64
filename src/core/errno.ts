/** The meaning of the `code` of a failed system call. */

/** The `code` of Node's permission model (`node --permission`). */
const ACCESS_DENIED = 'ERR_ACCESS_DENIED';

/** The `code` of a Node error, if it has one. */
export function errnoOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  // Errors of Deno's permission model have a name but no code.
  if ('name' in error && error.name === 'NotCapable') return ACCESS_DENIED;
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
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
