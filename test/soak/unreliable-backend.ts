import type { HintSink, WatchBackend, WatchSubscription } from 'resilient-watcher';

import { nodeFsBackend } from '../../src/watch/backends/node-fs.js';
import { errno } from '../support/faulty-file-system.js';
import type { Chance } from './chance.js';

/** The kernel's own hints, some of which are lost or doubled while `faulty`; subscriptions that die or are refused. */
export class UnreliableBackend implements WatchBackend {
  readonly name = 'unreliable';
  // Writes that are lost must not be relied on.
  readonly reportsWrites = false;
  readonly #chance: Chance;
  readonly #sinks = new Set<HintSink>();
  faulty = true;

  constructor(chance: Chance) {
    this.#chance = chance;
  }

  get subscriptions(): number {
    return this.#sinks.size;
  }

  /** Ends one subscription, or all of them. */
  fail(which: 'one' | 'all'): void {
    const sinks = [...this.#sinks];
    const dying = which === 'all' ? sinks : sinks.slice(0, 1);
    for (const sink of dying) sink.down(errno(this.#chance.pick(['EMFILE', 'ENOSPC', 'EIO'])));
  }

  async subscribe(sink: HintSink, options: { readonly persistent: boolean }): Promise<WatchSubscription> {
    if (this.faulty && this.#chance.oneIn(4)) throw errno(this.#chance.pick(['EMFILE', 'ENOSPC']));
    const unreliable: HintSink = {
      hint: (written) => {
        const times = this.faulty ? this.#chance.pick([0, 1, 1, 1, 1, 2]) : 1;
        for (let time = 0; time < times; time += 1) sink.hint(written);
      },
      down: (error) => sink.down(error),
    };
    const real = await nodeFsBackend().subscribe(unreliable, options);
    this.#sinks.add(sink);
    return {
      setDirectories: (directories) => {
        if (this.faulty && this.#chance.oneIn(300)) throw errno('ENOSPC');
        return real.setDirectories(directories);
      },
      close: () => {
        this.#sinks.delete(sink);
        return real.close();
      },
    };
  }
}
