/** Serializes writes to the same path, and coalesces those that only need to happen once. */
import { onAbort } from '../core/abort.js';
import type { FileSystemCalls } from '../core/file-system.js';

/** One write that waits for its turn. */
interface QueuedWrite<T> {
  /** Several waiting writes in a row that coalesce are done as one: the newest runs and the others get its result. */
  readonly coalesce: boolean;
  readonly signal?: AbortSignal | undefined;
  readonly work: (turn: RunningWrite) => Promise<T>;
}

/** A write that has its turn. */
export interface RunningWrite {
  /** Whether a synchronous write to the path has completed meanwhile, or is about to. */
  readonly overtaken: boolean;
  /** The finished file while its rename waits, as for a thread: a synchronous write removes it before its own rename. */
  renaming: string | undefined;
}

interface Turn {
  readonly signal: AbortSignal | undefined;
  readonly work: (turn: RunningWrite) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  /** Stops listening to the signal. */
  unlisten: () => void;
  overtaken: boolean;
}

/** Writes of which only the newest is done; the newest is last. */
interface Group {
  readonly coalesce: boolean;
  readonly turns: Turn[];
}

/** The writes to one path: those that wait, and the one that runs. */
interface Lane {
  readonly waiting: Group[];
  overtaken: boolean;
  renaming: string | undefined;
}

/** A queue for each path. Nothing is kept for a path that nobody writes to. */
class WriteQueue {
  readonly #lanes = new Map<string, Lane>();

  /** How many paths are being written to. */
  get size(): number {
    return this.#lanes.size;
  }

  /**
   * Runs `work` after all earlier work for this path. Rejects with the signal's reason as soon as it aborts while the
   * work waits; once the work runs, aborting is up to the work.
   */
  run<T>(path: string, write: QueuedWrite<T>): Promise<T> {
    const lane = this.#lanes.get(path);
    return lane ? enqueue(lane, write) : this.#begin(path, write);
  }

  /** Runs a write that has to wait for no other; then those that were added meanwhile, perhaps by the write itself. */
  #begin<T>(path: string, { signal, work }: QueuedWrite<T>): Promise<T> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    const lane: Lane = { waiting: [], overtaken: false, renaming: undefined };
    this.#lanes.set(path, lane);
    let result: Promise<T>;
    try {
      result = work(lane);
    } catch (error) {
      this.#lanes.delete(path);
      throw error;
    }
    const next = (): void => {
      if (lane.waiting.length === 0) this.#lanes.delete(path);
      else void this.#runWaiting(path, lane);
    };
    result.then(next, next);
    return result;
  }

  async #runWaiting(path: string, lane: Lane): Promise<void> {
    // The caller of the first write gets its result before the second one begins.
    await Promise.resolve();
    for (let next = lane.waiting.shift(); next; next = lane.waiting.shift()) {
      await runNewest(next.turns, lane);
    }
    this.#lanes.delete(path);
  }

  /** Keeps a rename that was requested already from replacing what is renamed next. */
  withdraw(path: string, calls: FileSystemCalls): void {
    const lane = this.#lanes.get(path);
    if (lane?.renaming === undefined) return;
    try {
      calls.unlink(lane.renaming);
      lane.overtaken = true;
    } catch {
      // It is renamed already.
    }
  }

  /** Marks all writes to the path that run or wait as overtaken by a newer one. */
  overtake(path: string): void {
    const lane = this.#lanes.get(path);
    if (!lane) return;
    lane.overtaken = true;
    for (const { turns } of lane.waiting) for (const turn of turns) turn.overtaken = true;
  }
}

/** Adds a write that waits for its turn. */
function enqueue<T>({ waiting }: Lane, { coalesce, signal, work }: QueuedWrite<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const turn: Turn = {
      signal,
      work,
      resolve: resolve as (value: unknown) => void,
      reject,
      unlisten: () => undefined,
      overtaken: false,
    };
    turn.unlisten = onAbort(signal, () => reject(signal?.reason as Error));
    if (signal?.aborted) return;
    const last = waiting.at(-1);
    if (coalesce && last?.coalesce) last.turns.push(turn);
    else waiting.push({ coalesce, turns: [turn] });
  });
}

/** Runs the newest write that is not aborted; the older ones get its result. Never rejects. */
async function runNewest(turns: Turn[], lane: Lane): Promise<void> {
  for (let turn = turns.pop(); turn; turn = turns.pop()) {
    turn.unlisten();
    if (turn.signal?.aborted) continue; // its caller has been rejected
    const settle = await run(turn, lane);
    settle(turn);
    // An abort is a matter of this caller alone: the next newest write runs.
    if (turn.signal?.aborted) continue;
    for (const other of turns.splice(0)) {
      other.unlisten();
      settle(other);
    }
  }
}

/** Runs one write; returns what settles a caller with its outcome. */
async function run(turn: Turn, lane: Lane): Promise<(turn: Turn) => void> {
  lane.overtaken = turn.overtaken;
  lane.renaming = undefined;
  try {
    const result = await turn.work(lane);
    return ({ resolve }) => resolve(result);
  } catch (error) {
    return ({ reject }) => reject(error);
  }
}

/** The queue of this process: independent callers may write to the same path. */
export const processWrites = new WriteQueue();
