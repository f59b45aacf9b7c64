import type { BigIntStats } from 'node:fs';

import { Backoff } from '../core/backoff.js';
import type { Clock } from '../core/clock.js';
import { errnoOf } from '../core/errno.js';
import type { Random } from '../core/random.js';
import { sleep } from '../core/sleep.js';
import { call, wait, type Effects } from '../fs/effects.js';

/**
 * For how long a refused rename is retried, ms. On Windows, scanners and indexers hold files open for moments. On other
 * systems only EBUSY can be temporary (some FUSE and network file systems); mostly the file is a mount point, and the
 * error should not be long in coming.
 */
const WINDOWS: Readonly<Record<string, number>> = { EBUSY: 2000, EPERM: 2000, EACCES: 2000 };
const OTHERS: Readonly<Record<string, number>> = { EBUSY: 150 };

/** How long to wait before a rename is tried again. */
const FIRST_DELAY_MS = 20;
const MAX_DELAY_MS = 200;

/** How to wait between two attempts. */
interface Retrying {
  readonly clock: Clock;
  readonly random: Random;
  readonly signal: AbortSignal | undefined;
}

/** For how long a rename that failed with this error is retried, ms; 0 for an error that is final. */
export function renameRetryMs(code: string | undefined, platform = process.platform): number {
  return (platform === 'win32' ? WINDOWS : OTHERS)[code ?? ''] ?? 0;
}

/**
 * Renames a file over another one.
 * @param file the `fstat` of the file.
 * @param retrying undefined in synchronous work, which cannot wait: the first error is final.
 */
export function* renameFile(
  from: string,
  to: string,
  file: BigIntStats,
  retrying: Retrying | undefined,
): Effects<void> {
  try {
    yield* call('rename', from, to);
  } catch (error) {
    yield* recoverRename(from, to, file, retrying, error);
  }
}

/** The same after a first attempt that failed with this error. Throws the last error. */
export function* recoverRename(
  from: string,
  to: string,
  file: BigIntStats,
  retrying: Retrying | undefined,
  failure: unknown,
): Effects<void> {
  let backoff: Backoff | undefined;
  for (let waitedMs = 0; ;) {
    // When the answer of a server is lost, the rename is sent again, and fails the second time.
    if (yield* isAt(to, file)) return;
    if (!retrying || waitedMs >= renameRetryMs(errnoOf(failure))) throw failure;
    const { clock, random, signal } = retrying;
    backoff ??= new Backoff({ firstDelayMs: FIRST_DELAY_MS, maxDelayMs: MAX_DELAY_MS, random });
    const delayMs = backoff.next();
    waitedMs += delayMs;
    yield* wait(() => sleep(clock, delayMs, signal && { signal }));
    try {
      yield* call('rename', from, to);
      return;
    } catch (error) {
      failure = error;
    }
  }
}

function* isAt(path: string, file: BigIntStats): Effects<boolean> {
  try {
    const { dev, ino } = yield* call('lstat', path);
    return dev === file.dev && ino === file.ino;
  } catch {
    return false;
  }
}
