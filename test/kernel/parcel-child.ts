/**
 * A program of its own that uses the parcel backend: what is tried here may freeze a process or leaves it
 * worse than before. It does what its first argument says and prints one JSON object.
 */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readlinkSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isMainThread, Worker } from 'node:worker_threads';

import { nodeFsBackend } from '../../src/watch/backends/node-fs.js';
import { parcelBackend } from '../../src/watch/backends/parcel.js';
import type { BackendError } from '../../src/core/errors/backend-error.js';
import type { WatchedDirectory, WatchSubscription } from '../../src/core/ports/watch-backend.js';
import { interruptThreads } from '../support/interrupt-threads.js';

/** A new tree. */
function newTree(): WatchedDirectory {
  const path = mkdtempSync(join(tmpdir(), 'parcel-child-'));
  return { path, identity: '', treeRoot: path };
}

const directory = newTree();

/** One subscription: `dead` settles when it is down, `hinted` when the next hint comes. */
class Subject {
  readonly dead: Promise<unknown>;
  hinted = (): void => undefined;
  #down!: (error: unknown) => void;
  #subscription: WatchSubscription | undefined;

  constructor() {
    this.dead = new Promise((resolve) => {
      this.#down = resolve;
    });
  }

  async open(...directories: WatchedDirectory[]): Promise<readonly string[]> {
    this.#subscription = await parcelBackend(nodeFsBackend()).subscribe(
      { hint: () => this.hinted(), down: (error) => this.#down(error) },
      { persistent: true },
    );
    return this.#subscription.setDirectories(directories);
  }

  /** Resolves when a write is heard of. */
  async hears({ path } = directory): Promise<void> {
    const hinted = new Promise<void>((resolve) => {
      this.hinted = resolve;
    });
    writeFileSync(join(path, 'file'), '');
    await hinted;
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
  }
}

function inotifyInstances(): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes('inotify');
    } catch {
      return false; // The descriptor of the listing itself.
    }
  }).length;
}

const scenarios: Record<string, () => Promise<unknown>> = {
  /** Subscribes, hears, closes; twice, so that the second time needs an instance again. */
  async watch() {
    for (let round = 0; round < 2; round += 1) {
      const subject = new Subject();
      await subject.open(directory);
      await subject.hears();
      await subject.close();
    }
    return { heard: true, instances: inotifyInstances() };
  },

  /** The module has nothing to watch any more, and something else takes the instance. */
  async leave() {
    const subject = new Subject();
    await subject.open(directory);
    await subject.close();
    watch('/', { persistent: false });
    return new Subject().open(newTree());
  },

  async 'watch two'() {
    const subject = new Subject();
    try {
      return await subject.open(directory, { path: tmpdir(), identity: '' });
    } finally {
      await subject.close();
    }
  },

  /** Kills the backend under two subscriptions until it is no longer offered. */
  async die() {
    process.on('SIGWINCH', () => undefined);
    const deaths: unknown[] = [];
    for (;;) {
      const subjects = [new Subject(), new Subject()];
      // A tree that was watched when the thread died is refused.
      const tree = newTree();
      try {
        for (const subject of subjects) await subject.open(tree);
      } catch (error) {
        return { deaths, refused: (error as BackendError).code, instances: inotifyInstances() };
      }
      await Promise.all(subjects.map((subject) => subject.hears(tree)));
      const dead = Promise.all(subjects.map((subject) => subject.dead));
      // Interrupts the poll() of parcel's thread, which kills the backend, as the exit of a child process may do.
      let areDead = false;
      void dead.then(() => (areDead = true));
      await interruptThreads(process.pid, () => areDead);
      for (const error of await dead) deaths.push((error as BackendError).code);
      for (const subject of subjects) await subject.close();
    }
  },

  async worker() {
    if (!isMainThread) {
      await new Subject().open(directory);
      return {};
    }
    const worker = new Worker(new URL(import.meta.url), { argv: ['worker'], stdout: true });
    const [output] = (await once(worker.stdout.setEncoding('utf8'), 'data')) as [string];
    return JSON.parse(output) as unknown;
  },
};

const answer = await Promise.resolve(scenarios[process.argv[2] ?? '']?.()).catch((error: unknown) => {
  const { code, sysctl, message } = error as BackendError;
  return { code, sysctl, message };
});
process.stdout.write(JSON.stringify(answer));
