/** Which files are read once more, because a write may not have changed their timestamps. */
import { writeFileSync } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { basename, join } from 'node:path';

import fc from 'fast-check';
import { nodeFileSystem, type FileSystemCalls } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { runSync } from '../../src/fs/effects.js';
import { COARSEST_TIMESTAMP_MS, type Found, type Target } from '../../src/fs/observation.js';
import { PathTarget } from '../../src/fs/targets/path-target.js';
import { TreeTarget } from '../../src/fs/targets/tree-target.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const LIMITS = { maxContentBytes: 1_000, maxTotalBytes: 10_000, maxFiles: 100 };
const TREE = { ...LIMITS, content: true, ignore: [], followLinks: false };

const targets = {
  tree: (root: string): Target => new TreeTarget(root, TREE),
  directory: (root: string): Target => new PathTarget(root, LIMITS),
};

/** A directory on a file system whose clock has ticks of this length, and all of whose files are of one byte. */
class TickingDisk {
  readonly root = temporaryDirectory();
  readonly opened: string[] = [];
  readonly calls: FileSystemCalls;
  readonly #tickMs: number;
  /** When files were changed, by inode number, ns. */
  readonly #changed = new Map<bigint, bigint>();
  nowMs = 1_000_000;

  constructor(tickMs: number) {
    const { sync } = nodeFileSystem;
    this.#tickMs = tickMs;
    this.calls = {
      ...sync,
      lstat: (path) => this.#stamped(sync.lstat(path)),
      fstat: (fd) => this.#stamped(sync.fstat(fd)),
      open: (path, ...rest) => {
        this.opened.push(basename(path));
        return sync.open(path, ...rest);
      },
    };
  }

  write(name: string, byte: string): void {
    writeFileSync(join(this.root, name), byte);
    const { ino } = nodeFileSystem.sync.lstat(join(this.root, name));
    this.#changed.set(ino, BigInt(Math.floor(this.nowMs / this.#tickMs) * this.#tickMs) * 1_000_000n);
  }

  #stamped(stat: BigIntStats): BigIntStats {
    const ns = this.#changed.get(stat.ino);
    return ns === undefined ? stat : Object.assign(stat, { ctimeNs: ns, mtimeNs: ns });
  }
}

/** A target on such a file system. */
class Subject {
  readonly disk: TickingDisk;
  readonly #target: Target;
  #known: Found | undefined;

  constructor(makeTarget: (root: string) => Target, tickMs: number) {
    this.disk = new TickingDisk(tickMs);
    this.#target = makeTarget(this.disk.root);
  }

  hint(name?: string): void {
    this.#target.touch?.(name === undefined ? undefined : join(this.disk.root, name));
  }

  /** @param timestampMs the time of the file system, as far as it is known. */
  observe(timestampMs?: number): Record<string, string> {
    const now = { monotonic: this.disk.nowMs, timestampMs };
    const seen = runSync(this.#target.observe(this.#known, undefined, now), this.disk.calls);
    if (seen.kind !== 'found') return {};
    this.#known = seen;
    return Object.fromEntries([...seen.files].map(([key, { snapshot }]) => [key, String(snapshot.content)]));
  }
}

const kinds = Object.entries(targets);

test.each(
  kinds.flatMap(([kind, target]) => [
    { kind, target, clock: 'is known', offsetMs: 0, waitMs: 0, again: ['new', 'newest'] },
    { kind, target, clock: 'was set back', offsetMs: -60_000, waitMs: 0, again: ['new', 'newest', 'old'] },
    { kind, target, clock: 'is not known', offsetMs: undefined, waitMs: 0, again: ['new', 'newest', 'old'] },
    {
      kind,
      target,
      clock: 'is known, long after',
      offsetMs: 0,
      waitMs: 2 * COARSEST_TIMESTAMP_MS,
      again: [],
    },
  ]),
)(
  'when the clock of the file system $clock, the files of a $kind that are read once more are $again',
  ({ target, offsetMs, waitMs, again }) => {
    const subject = new Subject(target, 10);
    const { disk } = subject;
    disk.write('old', 'a');
    disk.nowMs += 10;
    disk.write('new', 'a');
    disk.write('newest', 'a');
    disk.nowMs += waitMs;
    subject.observe(offsetMs === undefined ? undefined : disk.nowMs + offsetMs);
    disk.opened.length = 0;
    disk.nowMs += COARSEST_TIMESTAMP_MS;
    subject.observe();
    expect(disk.opened.sort()).toEqual(again);
    disk.opened.length = 0;
    subject.observe();
    expect(disk.opened).toEqual([]);
  },
);

const name = fc.constantFrom('a', 'b', 'c');

const step = fc.oneof(
  fc.record({ kind: fc.constant('write' as const), name, hinted: fc.boolean() }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.oneof(fc.nat(20), fc.nat(5_000)) }),
  fc.record({ kind: fc.constant('observe' as const), isClockKnown: fc.boolean() }),
);

test.each(kinds)('a %s shows every write in the end, however long a tick is', (_, target) => {
  fc.assert(
    fc.property(
      fc.constantFrom(1, 10, 1_000, COARSEST_TIMESTAMP_MS),
      fc.array(step, { maxLength: 25 }),
      (tickMs, steps) => {
        const subject = new Subject(target, tickMs);
        const { disk } = subject;
        const written: Record<string, string> = {};
        for (const [index, next] of steps.entries()) {
          if (next.kind === 'wait') disk.nowMs += next.ms;
          else if (next.kind === 'observe') subject.observe(next.isClockKnown ? disk.nowMs : undefined);
          else {
            written[next.name] = String.fromCharCode(0x61 + (index % 26));
            disk.write(next.name, written[next.name] ?? '');
            if (next.hinted) subject.hint(next.name);
          }
        }
        disk.nowMs += COARSEST_TIMESTAMP_MS;
        // As a resync that has verified all of it.
        subject.hint();
        expect(subject.observe(disk.nowMs)).toEqual(written);
      },
    ),
    { numRuns: rounds(100, 2_000) },
  );
});
