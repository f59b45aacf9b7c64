import { dirname, insidePath, resolve, told } from '../core/ports/platform-path.js';
import { checkPath, resolveOptions } from '../core/options/options.js';
import { trace, traceSync } from '../core/telemetry/telemetry.js';
import { Mounts } from '../fs/mounts.js';
import { replaceFile, type AtomicWriteResult } from './replace-file.js';
import { run, runNow, type Answer } from '../core/scheduling/steps.js';
import {
  OPTIONS,
  SYNC_OPTIONS,
  type AtomicWriteFileOptions,
  type AtomicWriteFileSyncOptions,
} from './write-options.js';
import { earlierWrites, inTurn, type Publication } from './write-queue.js';
import { sourceOf, WriteSource, type SyncWriteData, type WriteData } from './write-source.js';

/**
 * Replaces or creates a file: a reader sees the old or the new bytes, never a part of them and never no file. When the
 * promise resolves, the new bytes survive a power cut (see `durability`). Calls for the same path run one after
 * another; those that reach one file by different paths do not, and the last rename wins. Hard links, ACLs and extended
 * attributes of the old file are lost.
 *
 * @param data must not be changed until the promise settles. A stream is destroyed when the write ends early.
 * @throws {WriteError} (rejects) `step` says where it failed, `published` whether readers see the new content.
 * @throws {TypeError | RangeError} (rejects) for an invalid argument.
 * @throws the signal's reason (rejects) when aborted.
 */
export async function atomicWriteFile(
  path: string | URL,
  data: WriteData,
  options?: AtomicWriteFileOptions,
): Promise<AtomicWriteResult> {
  const owner = 'atomicWriteFile';
  // Before anything that can throw: a stream may fail at any time, and from now on its errors are handled.
  const source = sourceOf(owner, data, { canWait: true });
  const settings = resolveOptions(owner, options, OPTIONS);
  const target = insidePath(checkPath(owner, 'path', path));
  const { signal, fs, clock } = settings;
  const work = (publication: Publication): Answer<AtomicWriteResult> =>
    run(replaceFile(target, source, settings, { publication, waiting: { clock, signal } }));
  // A write that waits for its data must not hold up other writes: the data may depend on one of them.
  const isSlow = source instanceof WriteSource && source.isSlow;
  const mount = isSlow ? undefined : Mounts.of(fs).at(dirname(target)).point;
  const write = { path: resolve(target), fs, signal, mount };
  try {
    return await trace('write', { path: told(target) }, () => inTurn(write, work), resultOf);
  } finally {
    if (source instanceof WriteSource) source.close();
  }
}

/**
 * Does the same synchronously, for exit handlers and other places that cannot wait. It does not wait for asynchronous
 * writes to the same path (with the same `fs`): those that have not yet renamed their file resolve with `written:
 * false`. A rename that Windows refuses temporarily is not retried.
 *
 * @throws {WriteError} `step` says where it failed, `published` whether readers see the new content.
 * @throws {TypeError | RangeError} for an invalid argument.
 */
export function atomicWriteFileSync(
  path: string | URL,
  data: SyncWriteData,
  options?: AtomicWriteFileSyncOptions,
): AtomicWriteResult {
  const owner = 'atomicWriteFileSync';
  const settings = resolveOptions(owner, options, SYNC_OPTIONS);
  const source = sourceOf(owner, data, { canWait: false });
  const target = insidePath(checkPath(owner, 'path', path));
  // Now, because the data may come from a function that starts a later write.
  const earlier = earlierWrites(resolve(target), settings.fs);
  const work = (): AtomicWriteResult => runNow(replaceFile(target, source, settings, { earlier }));
  try {
    return traceSync('write', { path: told(target) }, work, resultOf);
  } finally {
    if (source instanceof WriteSource) source.close();
  }
}

function resultOf({ written }: AtomicWriteResult): string {
  return written ? 'written' : 'unchanged';
}
