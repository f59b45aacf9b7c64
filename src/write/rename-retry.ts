/**
 * For how long a refused rename is retried, ms. On Windows, scanners and indexers hold files open for moments. On other
 * systems only EBUSY can be temporary (some FUSE and network file systems); mostly the file is a mount point, and the
 * error should not be long in coming.
 */
const WINDOWS: Readonly<Record<string, number>> = { EBUSY: 2000, EPERM: 2000, EACCES: 2000 };
const OTHERS: Readonly<Record<string, number>> = { EBUSY: 150 };

/** 0 for an error that is final. */
export function renameRetryMs(code: string | undefined, platform = process.platform): number {
  return (platform === 'win32' ? WINDOWS : OTHERS)[code ?? ''] ?? 0;
}
