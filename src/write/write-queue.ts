/**
 * Serializes writes to the same path, and limits how many run at once. A synchronous write does not wait here: it asks
 * for the earlier ones, and tells them that it has published.
 */
import { onAbort } from '../core/scheduling/abort.js';
import { SerialQueue } from '../core/scheduling/serial-queue.js';
import { processState } from '../core/process-state.js';
import type { FileSystem } from '../core/ports/file-system.js';
import type { Answer } from '../core/scheduling/steps.js';

/** What a later synchronous write to the same path must know of an asynchronous one. */
export interface Publication {
  readonly path: string;
  readonly fs: FileSystem;
  /** The finished file, once its rename is requested. */
  file?: string | Buffer;
  /** The later one has published. */
  isOvertaken: boolean;
}

/** Where a write goes. */
interface QueuedWrite {
  readonly path: string;
  readonly fs: FileSystem;
  readonly signal: AbortSignal | undefined;
  /** The number of writes to one mount that run at once is limited. Undefined: this one is not counted. */
  readonly mount: string | undefined;
}

/**
 * As many writes as the thread pool of Node.js has threads: more would not finish sooner, and each holds two
 * descriptors. Counted by mount, because a server that does not answer must not hold up writes to other mounts.
 */
const MAX_AT_ONCE = Math.max(4, Number(process.env['UV_THREADPOOL_SIZE']) || 0);

interface Writes {
  /** By path. Independent callers may write to the same path. */
  readonly order: SerialQueue;
  /** The writes that run or wait. */
  readonly pending: Set<Publication>;
  /** By mount, how many writes run, and callbacks that start those over the limit, the oldest first. */
  readonly mounts: Map<string, { running: number; readonly waiting: (() => void)[] }>;
}

const writes = processState('writes', (): Writes => ({
  order: new SerialQueue(),
  pending: new Set(),
  mounts: new Map(),
}));

/**
 * Runs `work` after all earlier work for this path. If the signal aborts while the work waits, rejects at once with its
 * reason. Once the work runs, aborting is up to the work.
 */
export function inTurn<T>(
  { path, fs, signal, mount }: QueuedWrite,
  work: (publication: Publication) => Answer<T>,
): Promise<T> {
  const { order, pending } = writes();
  const publication: Publication = { path, fs, isOvertaken: false };
  pending.add(publication);
  return new Promise<T>((resolve, reject) => {
    const unlisten = signal && onAbort(signal, () => reject(signal.reason as Error));
    const inPlace = async (): Promise<T> => {
      try {
        unlisten?.();
        signal?.throwIfAborted();
        return await work(publication);
      } finally {
        pending.delete(publication);
      }
    };
    order.run(path, () => limited(mount, inPlace)).then(resolve, reject);
  });
}

/** The asynchronous writes to this path that have not ended. */
export function earlierWrites(path: string, fs: FileSystem): Publication[] {
  return [...writes().pending].filter((write) => write.path === path && write.fs === fs);
}

/** Does the work as soon as less than `MAX_AT_ONCE` other writes run on the mount. */
async function limited<T>(mount: string | undefined, work: () => Promise<T>): Promise<T> {
  if (mount === undefined) return work();
  const { mounts } = writes();
  const place = mounts.get(mount) ?? { running: 0, waiting: [] };
  mounts.set(mount, place);
  if (place.running >= MAX_AT_ONCE) await new Promise<void>((resolve) => place.waiting.push(resolve));
  else place.running += 1;
  try {
    return await work();
  } finally {
    // The next waiting write takes the place of this one.
    const wake = place.waiting.shift();
    if (wake) wake();
    else if ((place.running -= 1) === 0) mounts.delete(mount);
  }
}
