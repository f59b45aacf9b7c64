/**
 * Serializes writes to the same path, coalesces those that only need to happen once, and limits how many run at once.
 * A synchronous write does not wait here: it asks for the earlier ones, and tells them that it has published.
 */
import { onAbort } from '../core/scheduling/abort.js';
import { processState } from '../core/process-state.js';
import type { FileSystem } from '../core/ports/file-system.js';
import type { Answer } from '../core/scheduling/steps.js';

/** What a later synchronous write to the same path must know of an asynchronous one. */
export interface Publication {
  /** The finished file, once its rename is requested. */
  file?: string | Buffer;
  /** The later one has published. */
  isOvertaken: boolean;
}

/** A write that waits for its turn. */
interface QueuedWrite<T> {
  readonly fs: FileSystem;
  /**
   * Of several such writes in one file system that wait one after another, only the newest runs, and the others get its
   * result. Otherwise each runs.
   */
  readonly coalesce: boolean;
  readonly signal: AbortSignal | undefined;
  /** The number of writes to one mount that run at once is limited. Undefined: this one is not counted. */
  readonly mount: string | undefined;
  readonly work: (publication: Publication) => Answer<T>;
}

/** A write that waits or runs, and how its caller gets the outcome. */
interface Turn extends Publication {
  readonly write: QueuedWrite<unknown>;
  readonly resolve: (outcome: unknown) => void;
  /** Stops listening to the signal, if there is one. */
  readonly unlisten: (() => void) | undefined;
}

/**
 * As many writes as the thread pool of Node.js has threads: more would not finish sooner, and each holds two
 * descriptors. Counted by mount, because a server that does not answer must not hold up writes to other mounts.
 */
const MAX_AT_ONCE = Math.max(4, Number(process.env['UV_THREADPOOL_SIZE']) || 0);

interface Writes {
  /**
   * By path, the write that runs and those that wait, the oldest first. Independent callers may write to the same path.
   */
  readonly lanes: Map<string, Turn[]>;
  /** By mount, how many writes run, and callbacks that start those over the limit, the oldest first. */
  readonly mounts: Map<string, { running: number; readonly waiting: (() => void)[] }>;
}

const writes = processState('writes', (): Writes => ({ lanes: new Map(), mounts: new Map() }));

/**
 * Runs `work` after all earlier work for this path. If the signal aborts while the work waits, rejects at once with its
 * reason. Once the work runs, aborting is up to the work.
 */
export function inTurn<T>(path: string, write: QueuedWrite<T>): Promise<T> {
  const { signal } = write;
  if (signal?.aborted) return Promise.reject(signal.reason as Error);
  return new Promise<T>((resolve, reject) => {
    const unlisten = signal && onAbort(signal, () => reject(signal.reason as Error));
    const turn = { write, resolve, unlisten, isOvertaken: false } as Turn;
    const lane = writes().lanes.get(path);
    if (lane) lane.push(turn);
    else void drain(path, [turn]);
  });
}

/** The asynchronous writes to this path that have not ended. */
export function earlierWrites(path: string, fs: FileSystem): Publication[] {
  return (writes().lanes.get(path) ?? []).filter(({ write }) => write.fs === fs);
}

/** Runs the writes to one path, until none is left. Never rejects. */
async function drain(path: string, lane: Turn[]): Promise<void> {
  const { lanes } = writes();
  lanes.set(path, lane);
  /** How many older writes get the outcome of the newest. */
  let older = 0;
  for (let oldest = lane[0]; oldest; oldest = lane[0]) {
    while (areCoalesced(lane[older], lane[older + 1])) older += 1;
    const newest = lane[older] ?? oldest;
    const { signal, mount, work } = newest.write;
    const outcome = limited(mount, () => {
      newest.unlisten?.();
      signal?.throwIfAborted();
      return work(newest);
    });
    let isAborted = false;
    try {
      await outcome;
    } catch (error) {
      isAborted = signal?.aborted === true && error === signal.reason;
    }
    lane.splice(older, 1);
    newest.resolve(outcome);
    // An abort concerns this caller alone, and the next newest write runs. Any other outcome is also that of the older
    // writes: readers may have seen the newest content, so an older one must not replace it.
    if (isAborted) {
      older = Math.max(0, older - 1);
      continue;
    }
    for (const other of lane.splice(0, older)) {
      other.unlisten?.();
      other.resolve(outcome);
    }
    older = 0;
  }
  lanes.delete(path);
}

function areCoalesced(older: Turn | undefined, newer: Turn | undefined): boolean {
  if (!older?.write.coalesce || !newer?.write.coalesce) return false;
  return older.write.fs === newer.write.fs;
}

/** Does the work as soon as less than `MAX_AT_ONCE` other writes run on the mount. */
async function limited(mount: string | undefined, work: () => unknown): Promise<unknown> {
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
