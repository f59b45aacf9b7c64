/** What the backend `parcel` imports from `@parcel/watcher`, `node:worker_threads` and `builtins.ts`: in the bundle, this file. */
import { EventEmitter } from 'node:events';
import { constants } from 'node:fs';

import type ParcelWatcher from '@parcel/watcher';

import { promised } from '../../src/core/ports/file-system.js';
import { Errno } from './machine/machine.js';
import { NativeParcel } from './machine/parcel.js';
import * as time from './time.js';
import type { World } from './world.js';

let world: World | undefined;
let native: NativeParcel | undefined;

declare global {
  /** Undefined before the backend is loaded. */
  var forgetParcel: (() => void) | undefined;
}

/** The native module in the process of a schedule. */
export function loadParcelFor(ofSchedule: World): NativeParcel {
  world = ofSchedule;
  native = new NativeParcel(world.library, {
    turn: () => ofSchedule.turns,
    now: time.elapsed,
    after(ms, run) {
      const timer = time.setTimeout(run, ms).unref();
      return () => time.clearTimeout(timer);
    },
  });
  globalThis.forgetParcel?.();
  return native;
}

export { constants };
export const isMainThread = true;

export const nodeFileSystem = {
  promises: {
    async open(path: string, flags: number): Promise<{ close: () => Promise<unknown> }> {
      const fs = world?.library.fs;
      const fd = await promised<number>((done) => fs?.open(path, flags, 0, done));
      return { close: () => promised((done) => fs?.close(fd, done)) };
    },
  },
};

/** A thread with an event loop, and so an inotify instance, of its own. */
export class Worker extends EventEmitter {
  constructor() {
    super();
    void world?.sleep(20).then(() => {
      try {
        const queue = world?.library.openInotify();
        if (queue) world?.library.closeInotify(queue);
        this.emit('exit', 0);
      } catch (error) {
        this.emit('error', error instanceof Errno ? error.in('watch', '/') : error);
      }
    });
  }
}

export function subscribe(
  path: string,
  callback: ParcelWatcher.SubscribeCallback,
): Promise<ParcelWatcher.AsyncSubscription> {
  if (!native) throw new Error('There is no schedule');
  return native.subscribe(path, callback);
}
