/** A directory or a tree of many files: what a check costs, and what it finds when it verifies only some of them. */
import { mkdirSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import type { FileSystemCalls } from 'resilient-watcher';
import { describe, expect, test } from 'vitest';

import { nodeFileSystem } from '../../src/core/file-system.js';
import { runSliced, runSync } from '../../src/fs/effects.js';
import { VERIFIED_AT_ONCE, type Found, type Target } from '../../src/fs/observation.js';
import { PathTarget } from '../../src/fs/targets/path-target.js';
import { TreeTarget } from '../../src/fs/targets/tree-target.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const FILES = 3 * VERIFIED_AT_ONCE;
const LIMITS = { maxContentBytes: 1_000, maxTotalBytes: 1_000_000, maxFiles: 10 };
const TREE = { ...LIMITS, content: true, ignore: [], followLinks: false };

const kinds = {
  'a directory': {
    target: (root: string): Target => new PathTarget(root, LIMITS),
    key: (number: number) => `file-${number}`,
  },
  'a tree of one directory': {
    target: (root: string): Target => new TreeTarget(root, TREE),
    key: (number: number) => `directory/file-${number}`,
  },
  'a tree of many directories': {
    target: (root: string): Target => new TreeTarget(root, TREE),
    key: (number: number) => `directory-${number % 50}/file-${number}`,
  },
};

/** The file system, and how many calls it has answered. */
class CountedCalls {
  calls = 0;
  readonly sync = new Proxy(nodeFileSystem.sync, {
    get: (target, name) => {
      this.calls += 1;
      return Reflect.get(target, name) as unknown;
    },
  });
}

/** One that is observed as a watcher does it. */
class Subject {
  readonly root = temporaryDirectory();
  readonly #target: Target;
  readonly #isClockKnown: boolean;
  #now = 0;
  #found: Found;

  /** @param isClockKnown whether timestamps show that nothing has to be listed or read once more. */
  constructor({ target, key }: (typeof kinds)[keyof typeof kinds], files = FILES, isClockKnown = true) {
    this.#isClockKnown = isClockKnown;
    const keys = Array.from({ length: files }, (_, number) => key(number));
    for (const directory of new Set(keys.map(dirname)))
      mkdirSync(join(this.root, directory), { recursive: true });
    for (const name of keys) this.write(name, 'text');
    this.#target = target(this.root);
    this.#found = this.observe().found;
  }

  write(key: string, text: string): void {
    writeFileSync(join(this.root, key), text);
  }

  hint(key: string): void {
    this.#target.touch?.(join(this.root, key));
  }

  observe(): { found: Found; calls: number } {
    const counted = new CountedCalls();
    // Later than any signature has to be doubted.
    this.#now += 10_000;
    const now = {
      monotonic: this.#now,
      timestampMs: this.#isClockKnown ? Date.now() + this.#now : undefined,
    };
    const seen = runSync(this.#target.observe(this.#found, undefined, now), counted.sync);
    if (seen.kind !== 'found') throw new Error(`It is ${seen.kind}`);
    this.#found = seen;
    return { found: seen, calls: counted.calls };
  }

  verify(): { isUnchanged: boolean; calls: number } {
    const counted = new CountedCalls();
    const isUnchanged = runSync(this.#target.isUnchanged(this.#found), counted.sync);
    return { isUnchanged, calls: counted.calls };
  }

  /** What a resync does. */
  resync(): Found {
    return this.verify().isUnchanged ? this.#found : this.observe().found;
  }

  size(key: string): number | undefined {
    return this.#found.files.get(key)?.snapshot.size;
  }
}

describe.each(Object.entries(kinds))('%s with many files', (_, kind) => {
  const { target, key } = kind;

  test('is verified, and observed after a hint, at a cost that does not grow with it', () => {
    const [few, many] = [new Subject(kind, FILES / 2), new Subject(kind)];
    const costs = [few, many].map((subject) => {
      const verified = subject.verify();
      expect(verified.isUnchanged).toBe(true);
      subject.write(key(7), 'something longer');
      subject.hint(key(7));
      const { calls } = subject.observe();
      expect(subject.size(key(7))).toBe(16);
      return [verified.calls, calls];
    });
    expect(costs[1]).toEqual(costs[0]);
  });

  test('shows at the next resync what was added and removed when every hint was lost', () => {
    const subject = new Subject(kind);
    const [added, removed, moved] = [`${key(1)}-added`, key(2), key(3)];
    subject.write(added, 'text');
    unlinkSync(join(subject.root, removed));
    renameSync(join(subject.root, moved), join(subject.root, `${moved}-moved`));
    const { files } = subject.resync();
    expect([added, removed, moved, `${moved}-moved`].map((name) => files.has(name))).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect(files.size).toBe(FILES);
    expect(subject.observe().calls).toBeLessThan(50);
    expect(subject.verify().isUnchanged).toBe(true);
  });

  test('shows within one round of resyncs what was written and replaced while every hint was lost', () => {
    const subject = new Subject(kind);
    const places = [key(0), key(FILES / 2), key(FILES - 1)];
    for (const place of places) subject.write(place, 'written in place');
    const replaced = key(FILES - 2);
    writeFileSync(join(subject.root, 'next'), 'replaced');
    renameSync(join(subject.root, 'next'), join(subject.root, replaced));
    for (let resyncs = 0; resyncs <= FILES / VERIFIED_AT_ONCE; resyncs += 1) {
      subject.resync();
      // Other changes do not begin the round again.
      subject.write(key(5), 'x'.repeat(resyncs + 1));
      subject.hint(key(5));
      subject.observe();
    }
    expect(places.map((place) => subject.size(place))).toEqual([16, 16, 16]);
    expect(subject.size(replaced)).toBe(8);
  });

  test('is observed in slices, though none of its files is read', async () => {
    const subject = new Subject(kind);
    let turns = 0;
    let isOver = false;
    setImmediate(function count() {
      turns += 1;
      if (!isOver) setImmediate(count);
    });
    await runSliced(target(subject.root).observe(), nodeFileSystem.sync);
    isOver = true;
    // Visiting a file takes a call, and comparing it as long as one.
    expect(turns).toBeGreaterThanOrEqual(Math.floor((2 * FILES) / 500));
  });
});

test('the contents of an unchanged directory are not listed again when a directory above it has changed', () => {
  const subject = new Subject(kinds['a tree of many directories']);
  mkdirSync(join(subject.root, 'new/deeper'), { recursive: true });
  writeFileSync(join(subject.root, 'new/deeper/file'), 'text');
  rmSync(join(subject.root, 'directory-3'), { recursive: true });
  expect(subject.verify().isUnchanged).toBe(false);
  const { found, calls } = subject.observe();
  expect(found.files.has('new/deeper/file')).toBe(true);
  expect(found.files.size).toBe(FILES - FILES / 50 + 1);
  // A call for each of the fifty directories, and none for a file of theirs.
  expect(calls).toBeLessThan(100);
});

test('a large directory is listed in portions, whatever its names are', () => {
  const subject = new Subject(kinds['a directory'], 10);
  const name = Buffer.concat([Buffer.from(`${subject.root}/`), Buffer.from([0x66, 0xff])]);
  writeFileSync(name, 'not UTF-8');
  const lstat: FileSystemCalls['lstat'] = (path) => {
    const stat = nodeFileSystem.sync.lstat(path);
    return path === subject.root ? Object.assign(stat, { size: 10_000_000n }) : stat;
  };
  const portions: number[] = [];
  const readEntries: FileSystemCalls['readEntries'] = (directory) => {
    const entries = nodeFileSystem.sync.readEntries(directory);
    portions.push(entries.length);
    return entries;
  };
  const calls = { ...nodeFileSystem.sync, lstat, readEntries };
  const seen = runSync(kinds['a directory'].target(subject.root).observe(), calls);
  expect(portions).toEqual([11]);
  expect([...(seen as Found).files.keys()]).toContain('f\udcff');
});

test('changes made together in a small directory are reported together, whichever hint arrives first', () => {
  const kind = kinds['a directory'];
  const subject = new Subject(kind, 2);
  // Afterwards a file is read again only when it is found different.
  subject.observe();
  for (const number of [0, 1]) subject.write(kind.key(number), 'something longer');
  subject.hint(kind.key(0));
  subject.observe();
  expect([0, 1].map((number) => subject.size(kind.key(number)))).toEqual([16, 16]);
});

test('files that have to be read once more are, each of them once, and some at each check', () => {
  const { key } = kinds['a tree of one directory'];
  const reads = { ...TREE, maxFiles: FILES };
  const subject = new Subject({ target: (root) => new TreeTarget(root, reads), key }, FILES, false);
  const whole = subject.observe().calls;
  let checks = 1;
  for (; !subject.verify().isUnchanged; checks += 1) {
    // The two directories are listed once more, as well.
    expect(subject.observe().calls).toBeLessThanOrEqual(whole + 10);
    expect(checks).toBeLessThan(FILES);
  }
  // Three calls for each file would be fewer than reading it takes.
  expect(whole).toBeLessThan(3 * (FILES / 2));
  expect(checks).toBeGreaterThan(2);
});
