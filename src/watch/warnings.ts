/**
 * Warns when a target is watched, but cannot be reported in full or never changes.
 *
 * | a look finds                       | the warning                                    |
 * |------------------------------------|------------------------------------------------|
 * | more than the limits allow         | `limit`, until the target is within them       |
 * | a mount that never shows an update | `subPath`, until the target is found elsewhere |
 * | the same as before                 | is not emitted again                           |
 */
import { staleMount, type Mounts } from '../fs/mounts.js';
import type { Found } from '../fs/observation.js';
import type { WatcherWarning } from './watcher-events.js';

const NONE: readonly WatcherWarning[] = [];

/** The warnings of one watcher. */
export class Warnings {
  readonly #warn: (warning: WatcherWarning) => void;
  #current = NONE;

  /** @param warn receives each new warning. */
  constructor(warn: (warning: WatcherWarning) => void) {
    this.#warn = warn;
  }

  /** The current warnings. */
  get current(): WatcherWarning[] {
    return [...this.#current];
  }

  /** Updates the warnings from what a look has found. */
  found({ snapshot, limited }: Found, mounts: Mounts): void {
    this.#set('limit', limited);
    if (snapshot.kind === 'group') return;
    const { realPath } = snapshot;
    const kind = snapshot.kind === 'file' ? 'file' : 'directory';
    this.#set('subPath', staleMount(mounts.at(realPath), realPath, kind)?.message);
  }

  /** @param message undefined if there is no longer anything to warn about. */
  #set(code: WatcherWarning['code'], message: string | undefined): void {
    const before = this.#current.find((warning) => warning.code === code)?.message;
    if (message === before) return;
    this.#current = this.#current.filter((warning) => warning.code !== code);
    if (message === undefined) return;
    this.#current = [...this.#current, { code, message }];
    this.#warn({ code, message });
  }
}
