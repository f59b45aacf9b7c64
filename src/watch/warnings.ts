/**
 * What a user should know about the target, although it is watched.
 *
 * | a check finds                                   | the warning                                                      |
 * |-------------------------------------------------|------------------------------------------------------------------|
 * | more than the limits allow                      | `limit`, until it is within them                                 |
 * | a mount that never shows an update              | `subPath`, until it is found elsewhere (mount-examination.ts)    |
 * | the same as before                              | is not given again                                               |
 */
import type { FileSystem } from '../core/file-system.js';
import type { Scope } from '../core/scope.js';
import type { Found } from '../fs/observation.js';
import type { ChangeCause } from './change.js';
import { MountExamination } from './mount-examination.js';
import type { WatcherWarning } from './watcher-events.js';

/** Receives each new warning. */
interface WarningsOwner {
  report(event: { readonly name: 'warning'; readonly payload: WatcherWarning }): void;
}

const NO_WARNINGS: readonly WatcherWarning[] = [];

/** The warnings of one watcher. */
export class Warnings {
  readonly #mount: MountExamination;
  readonly #scope: Scope;
  readonly #owner: WarningsOwner;
  #current = NO_WARNINGS;

  constructor(fs: FileSystem, scope: Scope, owner: WarningsOwner) {
    this.#mount = new MountExamination(fs);
    this.#scope = scope;
    this.#owner = owner;
  }

  /** Those that hold at present. */
  get current(): WatcherWarning[] {
    return [...this.#current];
  }

  /** A check has found this. */
  found(seen: Found, cause: ChangeCause): void {
    this.#set('limit', seen.limited);
    const examined = this.#mount.examine(seen, cause)?.then((message) => this.#set('subPath', message));
    if (examined) void this.#scope.track(examined);
  }

  /** @param message undefined: there is nothing to warn about any more. */
  #set(code: WatcherWarning['code'], message: string | undefined): void {
    const before = this.#current.find((warning) => warning.code === code)?.message;
    if (message === before) return;
    this.#current = this.#current.filter((warning) => warning.code !== code);
    if (message === undefined) return;
    this.#current = [...this.#current, { code, message }];
    this.#owner.report({ name: 'warning', payload: { code, message } });
  }
}
