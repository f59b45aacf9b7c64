/** Listeners that fail, or that use the watcher which called them. */
import { ClosedError } from '../../../src/index.js';
import type { Habit } from './habits.js';

/** After so many reports, listeners only listen. */
const MAX_CALLS = 5;

/** Longer than the events that a schedule has one after another, ms. */
const LONG_MS = 2_000;

export const LISTENERS: Readonly<Record<string, Habit>> = {
  /** 6: a listener that fails does not affect others. */
  listenersFail({ watching }) {
    watching.hasFailingListener = true;
    watching.watcher.on('change', () => {
      throw new Error('a listener throws');
    });
    const rejects = (): unknown => Promise.reject(new Error('a listener rejects'));
    watching.watcher.on('change', rejects);
    return Promise.resolve();
  },

  /** 5: a call that a listener makes settles. */
  async listenersCheck({ world, watching }) {
    const calls: Promise<unknown>[] = [];
    const { watcher } = watching;
    watcher.on('change', () => {
      if (calls.length < MAX_CALLS) calls.push(Promise.allSettled([watcher.check(), watcher.snapshot()]));
    });
    await world.sleep(LONG_MS);
    await Promise.all(calls);
  },

  /** 7: a listener closes the watcher. Later, the program creates another one. */
  async listenersClose({ world, watching }) {
    let closed: Promise<unknown> | undefined;
    let mayClose = true;
    watching.watcher.on('change', () => {
      if (mayClose)
        closed ??= Promise.allSettled([watching.close(), watching.watcher.check().catch(assertClosed)]);
    });
    await world.sleep(LONG_MS);
    mayClose = false;
    if (!closed) return;
    for (const result of (await closed) as PromiseSettledResult<unknown>[])
      if (result.status === 'rejected') throw result.reason as Error;
    await watching.restart();
  },
};

function assertClosed(error: unknown): void {
  if (!(error instanceof ClosedError)) throw error as Error;
}
