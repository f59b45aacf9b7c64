/** How `@parcel/watcher` holds events back, and hands them to the callbacks of all subscriptions of the process. */
import type ParcelWatcher from '@parcel/watcher';

import type { Process } from './process.js';

const QUIET_MS = 50;
const LONGEST_MS = 500;

/** One subscription. */
export interface Watcher {
  readonly root: string;
  /** Undefined when it has ended. */
  callback: ParcelWatcher.SubscribeCallback | undefined;
  readonly events: Map<string, { isCreated: boolean; isDeleted: boolean }>;
  /** What was created and deleted in a batch that told something else, and in no batch since. */
  readonly swallowed: Set<string>;
}

/** Time as the process has it. */
export interface Timing {
  /** Counts the turns of the event loop. */
  readonly turn: () => number;
  readonly now: () => number;
  readonly after: (ms: number, run: () => void) => () => void;
}

export class Batches {
  /** All that have not ended. */
  readonly watchers = new Set<Watcher>();
  readonly #process: Process;
  readonly #timing: Timing;
  #lastNotified = -Infinity;
  #stopWaiting: (() => void) | undefined;
  /** Calls of callbacks that are on their way, in order. */
  readonly #calls: (() => void)[] = [];

  constructor(process: Process, timing: Timing) {
    this.#process = process;
    this.#timing = timing;
  }

  /** These have got events. */
  touched(watchers: Iterable<Watcher>): void {
    for (const { callback, events } of watchers) if (callback && events.size > 0) this.#trigger();
  }

  #trigger(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
    if (this.#timing.now() - this.#lastNotified > LONGEST_MS) this.#notify();
    else this.#stopWaiting = this.#timing.after(QUIET_MS, () => this.#notify());
  }

  /** All subscriptions of the process get what they have. */
  #notify(): void {
    this.#stopWaiting = undefined;
    this.#lastNotified = this.#timing.now();
    for (const watcher of this.watchers) {
      if (watcher.events.size === 0) continue;
      const events = [...watcher.events].filter(([, { isCreated, isDeleted }]) => !(isCreated && isDeleted));
      for (const path of watcher.events.keys()) watcher.swallowed.add(path);
      for (const [path] of events) watcher.swallowed.delete(path);
      // An empty batch hides nothing: everything is looked at.
      if (events.length === 0) watcher.swallowed.clear();
      const sorted = events.sort(([one], [other]) => (one < other ? -1 : 1));
      watcher.events.clear();
      this.call(
        watcher,
        null,
        sorted.map(([path, { isCreated, isDeleted }]) => ({
          path,
          type: isCreated ? 'create' : isDeleted ? 'delete' : 'update',
        })),
      );
    }
  }

  /** The callback is called in a turn of its own. */
  call({ callback, root }: Watcher, error: Error | null, events: ParcelWatcher.Event[]): void {
    if (!callback) return;
    this.#calls.push(() => callback(error, events));
    // Calls are made in their order.
    later(this.#process, 'the callback of', root, () => this.#calls.shift()?.());
  }
}

export function eventOf({ events }: Watcher, path: string): { isCreated: boolean; isDeleted: boolean } {
  const event = events.get(path) ?? { isCreated: false, isDeleted: false };
  events.set(path, event);
  return event;
}

/** Something that the process does in one of its next turns. */
export function later(process: Process, call: string, path: string, run: () => void): void {
  const { pending } = process.machine;
  const answer = (): boolean => {
    pending.splice(pending.indexOf(work), 1);
    run();
    return true;
  };
  const work = {
    call,
    path,
    process,
    isStuck: false,
    execute: () => true,
    drop: () => undefined,
    answer,
  };
  pending.push(work);
}
