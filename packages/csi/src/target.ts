/** The directory in which kubelet asks a driver to publish a volume. */
import type { BigIntStats } from 'node:fs';
import { isAbsolute, normalize } from 'node:path';

import type { FileSystem } from 'resilient-watcher';
import { describe, errnoOf, promised, redactError } from 'resilient-watcher/internal';
import { KubernetesError } from 'resilient-watcher/kubernetes';

export type TargetHook = 'prepareTarget' | 'removeTarget';

/**
 * Whether the target directory exists.
 * @throws {KubernetesError} (rejects) `ERR_CSI_TARGET` for a path to which no volume can be published.
 */
export async function targetExists(targetPath: unknown, fs: Pick<FileSystem, 'lstat'>): Promise<boolean> {
  if (typeof targetPath !== 'string' || !isAbsolute(targetPath) || targetPath.includes('\0')) {
    throw badTarget(targetPath, 'is not an absolute path');
  }
  if (normalize(targetPath) !== targetPath) throw badTarget(targetPath, 'is not a clean path');
  if (targetPath === '/') throw badTarget(targetPath, 'is the root directory');
  try {
    // A symbolic link would let its creator choose where secrets are written.
    const stat = await promised<BigIntStats>((done) => fs.lstat(targetPath, { bigint: true }, done));
    if (stat.isSymbolicLink()) throw badTarget(targetPath, 'is a symbolic link');
    if (!stat.isDirectory()) throw badTarget(targetPath, 'is not a directory');
    return true;
  } catch (cause) {
    if (errnoOf(cause) === 'ENOENT') return false;
    if (cause instanceof KubernetesError) throw cause;
    throw badTarget(targetPath, 'cannot be examined', cause);
  }
}

/** @param why completes "Cannot publish in "/m": it …". */
export function badTarget(targetPath: unknown, why: string, cause?: unknown): KubernetesError {
  const message = `Cannot publish in ${describe(targetPath)}: it ${why}`;
  return new KubernetesError('ERR_CSI_TARGET', message, { cause });
}

/** A hook of the application has failed, or has not returned in time. */
export function hookFailed(hook: TargetHook, targetPath: string, thrown: unknown): KubernetesError {
  const cause = redactError(thrown);
  const what = hook === 'prepareTarget' ? 'prepare' : 'remove';
  return new KubernetesError('ERR_CSI_TARGET', `Cannot ${what} ${describe(targetPath)}: ${cause.message}`, {
    cause,
  });
}
