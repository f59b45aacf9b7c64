/** What the kernel and parcel do to a tree that is watched, each time in a process of its own. */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { ResilientWatcherOptions } from 'resilient-watcher';
import { describe, expect, onTestFinished, test } from 'vitest';

import { linuxOnly, setLimit, skip, underLimit } from '../support/namespace.js';
import type { Transcript } from '../support/program.js';
import { WatchingProgram, type WatchEvent } from '../support/program.js';
import { some } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

linuxOnly();

/** A limit that was raised a lot would take too long to reach. */
const MOST_EVENTS = 200_000;

/** Soon again, whatever happens, so that nothing but the kernel is waited for. */
const SOON = { pollIntervalMs: 20, maxRestartDelayMs: 100, missingGraceMs: 1 } as const;
/** What is reported, a native event or a poll led to. */
const NATIVE: ResilientWatcherOptions = { ...SOON, recursive: true, resyncIntervalMs: 0 };

/** The same with a resync, which leaves time for parcel and the settling to be first. */
const BACKED: ResilientWatcherOptions = { ...NATIVE, resyncIntervalMs: 350 };

const BACKENDS = ['fs', 'parcel'] as const;

/** A tree on disk. */
class Tree {
  readonly root = join(temporaryDirectory(), 'root');
  /** The files that were written. */
  readonly #files = new Set<string>();

  constructor(...files: string[]) {
    for (const file of files) this.write(file);
  }

  write(file: string): void {
    mkdirSync(join(this.root, file, '..'), { recursive: true });
    writeFileSync(join(this.root, file), file);
    this.#files.add(file);
  }

  remove(): void {
    rmSync(this.root, { recursive: true });
    this.#files.clear();
  }

  /** Resolves with the report of exactly the files that were written. */
  reportedTo(transcript: Transcript): Promise<WatchEvent> {
    return transcript.until({ event: 'change', files: [...this.#files].sort().join(' ') });
  }

  /** Files are written in `directory` until one is reported with this cause: others may have been sooner. */
  async heardBy(transcript: Transcript, directory: string, causes: readonly unknown[]): Promise<void> {
    let cause: unknown;
    for (let number = 0; !causes.includes(cause); number += 1) {
      this.write(join(directory, `heard-${number}`));
      ({ cause } = await this.reportedTo(transcript));
    }
  }
}

describe('@parcel/watcher', () => {
  test.for(some(['new', 'a/new new', 'new new/deep/er'], 3, 1))(
    '%s: directories that are lost in an overflow are found, and then watched natively',
    async (names, context) => {
      const directories = names.split(' ');
      const length = Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8'));
      if (length > MOST_EVENTS) skip(context, `the queue of events holds ${length} here`);
      // Events of ignored files also fill the queue, but are no hints.
      const noise = ['noise-0', 'noise-1'];
      const tree = new Tree('a/b', 'c');
      for (const name of noise) writeFileSync(join(tree.root, name), '');
      const options = { ...BACKED, backend: 'parcel', recursive: { ignore: noise } } as const;
      const process = new WatchingProgram(tree.root, options);
      const { transcript } = process;
      await transcript.until({ event: 'started', state: 'watching', backend: 'parcel' });

      await process.stop();
      for (let event = 0; event <= length; event += 1) {
        // Two that are the same in a row would be one.
        chmodSync(join(tree.root, `noise-${event % 2}`), 0o600);
      }
      for (const directory of directories) tree.write(`${directory}/file`);
      process.continue();

      // The events that were left in the queue may lead to a look that is sooner than the resync.
      const { cause } = await tree.reportedTo(transcript);
      expect(['resync', 'parcel']).toContain(cause);
      for (const directory of directories) await tree.heardBy(transcript, directory, ['parcel']);
      expect(transcript.of('restart')).toEqual([]);
      expect(transcript.of('error')).toEqual([]);
    },
  );

  test('when its thread has died the tree is watched by fs, and earlier changes are found', async () => {
    const tree = new Tree('a/b');
    const process = new WatchingProgram(tree.root, { ...NATIVE, backend: 'parcel' });
    const { transcript } = process;
    await transcript.until({ event: 'started', state: 'watching', backend: 'parcel' });
    await process.interruptThreads(() => {
      tree.write('a/meanwhile');
      return transcript.of('restart').length > 0;
    });
    await tree.reportedTo(transcript);
    // Its listing of this tree leaked with the thread.
    await tree.heardBy(transcript, 'new', ['parcel']);
    tree.remove();
    tree.write('again');
    await tree.reportedTo(transcript);
    expect(transcript.of('error')).toEqual([]);
  });
});

test.for(some(BACKENDS, 2))(
  '%s: a tree that needs more inotify watches than allowed is polled, emits degraded, and recovers when the limit is raised',
  async (backend, context) => {
    const prefix = underLimit('max_inotify_watches', 20);
    if (!prefix) skip(context, '`unshare -Ur` is not permitted, or the kernel has no such limit');
    const tree = new Tree('a/b');
    const process = new WatchingProgram(tree.root, { ...NATIVE, backend }, prefix);
    const { transcript } = process;
    await transcript.until({ event: 'started', state: 'watching' });
    // At once and nested, so that a watcher of a tree has to open it again.
    for (let number = 0; number < 20; number += 1) tree.write(`grown-${number}/x/file`);
    await transcript.until({
      event: 'degraded',
      code: 'ERR_BACKEND_LIMIT',
      sysctl: 'fs.inotify.max_user_watches',
    });
    await tree.heardBy(transcript, 'grown-7/x', ['poll']);
    setLimit(process.child.pid, 'max_inotify_watches', 1_000);
    await transcript.until({ event: 'recovered' });
    await tree.heardBy(transcript, 'grown-8/x', ['fs', 'parcel']);
    expect(transcript.of('error')).toEqual([]);
  },
);

test.each(some(BACKENDS, 2, 1))(
  '%s: changes in a directory without read permission are reported once it is readable, all others at once',
  async (backend) => {
    const tree = new Tree('a/b');
    for (const path of [join(tree.root, '..'), tree.root, join(tree.root, 'a')]) chmodSync(path, 0o755);
    const locked = join(tree.root, 'locked');
    mkdirSync(locked);
    chmodSync(locked, 0o000);
    onTestFinished(() => chmodSync(locked, 0o700));
    const more = process.getuid?.() === 0 ? ['unprivileged'] : [];
    const { transcript } = new WatchingProgram(tree.root, { ...BACKED, backend }, [], ...more);
    await transcript.until({ event: 'started' });
    await tree.heardBy(transcript, 'a', ['fs', 'parcel']);
    tree.write('a/new/c');
    await tree.reportedTo(transcript);
    chmodSync(locked, 0o755);
    tree.write('locked/file');
    await tree.reportedTo(transcript);
    await tree.heardBy(transcript, 'locked', ['fs', 'parcel']);
    expect(transcript.of('error')).toEqual([]);
  },
);
