/**
 * Writes to the same path, one after another, in the order of the calls. Nothing is kept of a path that nobody
 * writes to.
 */

/** One write that waits for its turn. */
export interface QueuedWrite<T> {
  /** Gives way to a newer one that comes while it waits, and takes its result, if that one would as well. */
  readonly coalesce: boolean;
  readonly signal?: AbortSignal | undefined;
  /** @param isOvertaken whether a synchronous write to the path has been done meanwhile. */
  readonly work: (isOvertaken: () => boolean) => Promise<T>;
}

interface Turn {
  readonly signal: AbortSignal | undefined;
  readonly work: (isOvertaken: () => boolean) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly onAbort: () => void;
  overtaken: boolean;
}

/** Writes of which only the newest need be done; the newest is last. */
interface Group {
  readonly coalesce: boolean;
  readonly turns: Turn[];
}

interface Lane {
  readonly waiting: Group[];
  running: Turn | undefined;
}

/** A queue for each path. */
export class WriteQueue {
  readonly #lanes = new Map<string, Lane>();

  /** How many paths are being written to. */
  get size(): number {
    return this.#lanes.size;
  }

  /** Does the work when all earlier work for this path is done. An abort while it waits rejects at once. */
  run<T>(path: string, { coalesce, signal, work }: QueuedWrite<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const onAbort = (): void => reject(signal?.reason as Error);
      const turn: Turn = {
        signal,
        work,
        resolve: resolve as (value: unknown) => void,
        reject,
        onAbort,
        overtaken: false,
      };
      if (signal?.aborted) {
        onAbort();
        return;
      }
      const lane = this.#lanes.get(path);
      if (!lane) {
        const idle: Lane = { waiting: [{ coalesce, turns: [turn] }], running: undefined };
        this.#lanes.set(path, idle);
        void this.#drain(path, idle);
        return;
      }
      signal?.addEventListener('abort', onAbort, { once: true });
      const last = lane.waiting.at(-1);
      if (coalesce && last?.coalesce) last.turns.push(turn);
      else lane.waiting.push({ coalesce, turns: [turn] });
    });
  }

  /** Tells all writes to the path that were begun or wait that a newer one has been done past them. */
  overtake(path: string): void {
    const lane = this.#lanes.get(path);
    if (!lane) return;
    if (lane.running) lane.running.overtaken = true;
    for (const { turns } of lane.waiting) for (const turn of turns) turn.overtaken = true;
  }

  async #drain(path: string, lane: Lane): Promise<void> {
    for (let group = lane.waiting.shift(); group; group = lane.waiting.shift()) {
      await runNewest(group.turns, lane);
    }
    this.#lanes.delete(path);
  }
}

/** Does the newest write that is still wanted; the older ones share its result. */
async function runNewest(turns: Turn[], lane: Lane): Promise<void> {
  for (let newest = turns.pop(); newest; newest = turns.pop()) {
    const turn = newest;
    // From here on the work itself watches the signal: after its rename, nothing can be aborted.
    turn.signal?.removeEventListener('abort', turn.onAbort);
    if (turn.signal?.aborted) continue; // its caller has been told
    lane.running = turn;
    let settle: (turn: Turn) => void;
    try {
      const result = await turn.work(() => turn.overtaken);
      settle = ({ resolve }) => resolve(result);
    } catch (error) {
      settle = ({ reject }) => reject(error);
      if (turn.signal?.aborted) {
        // Only this caller has changed its mind.
        settle(turn);
        continue;
      }
    } finally {
      lane.running = undefined;
    }
    for (const other of [turn, ...turns.splice(0)]) {
      other.signal?.removeEventListener('abort', other.onAbort);
      settle(other);
    }
  }
}

/** The queue of this process: two callers who know nothing of each other may write to the same path. */
export const processWrites = new WriteQueue();
