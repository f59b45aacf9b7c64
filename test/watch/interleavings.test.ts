/**
 * A publisher acts between any two calls of a watcher: a seed decides when. Whatever lies in a volume is reported from
 * one revision, in any kind of target, and the first report is as complete as every later one. Beside the simulation,
 * because it finds what that has not found yet: a proof of a volume that uses shared answers, a tree whose root is not
 * proven.
 */
import { mkdirSync, renameSync as rename, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { faultyFileSystem } from '../support/faulty-file-system.js';
import { rounds } from '../support/rounds.js';
import type { SceneOptions } from '../support/scene.js';
import { ScriptedScene } from '../support/scripted-scene.js';

/** Mulberry32: the same numbers for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Steps = Iterator<unknown>;

interface Kind {
  readonly options?: SceneOptions;
  target(root: string): string | string[];
  /** The system calls of the publisher, one after another, without end. */
  publish(root: string): Steps;
  /** What is wrong with a report. */
  fault(files: Map<string, string>): string | undefined;
}

function* versions(volume: KubeletVolume, keys: readonly string[]): Steps {
  for (let version = 1; version < 40; version += 1) {
    yield* volume.steps(Object.fromEntries(keys.map((key) => [key, `v${version}`])));
  }
}

/** Keys that come and go with the version. */
function* changingKeys(volume: KubeletVolume): Steps {
  for (let version = 1; version < 40; version += 1) {
    const own = `certs/only-${version}`;
    yield* volume.steps({ 'certs/a': `v${version}`, 'certs/b': `v${version}`, [own]: `v${version}` });
  }
}

function oneVersion(count: number): (files: Map<string, string>) => string | undefined {
  return (files) => {
    if (files.size === 0) return undefined;
    if (new Set(files.values()).size > 1) return 'two revisions';
    return files.size === count ? undefined : `${files.size} of ${count} keys`;
  };
}

const KEYS = ['certs/a', 'certs/b', 'certs/c'];

const kinds: Record<string, Kind> = {};
for (const swap of ['rename', 'remove'] as const) {
  const volumeAt = (root: string): KubeletVolume => new KubeletVolume(join(root, 'v'), { swap });
  kinds[`a volume, ${swap}`] = {
    target: (root) => join(root, 'v'),
    publish: (root) => versions(volumeAt(root), KEYS),
    fault: oneVersion(3),
  };
  kinds[`a directory in a volume, ${swap}`] = {
    target: (root) => join(root, 'v/certs'),
    publish: (root) => versions(volumeAt(root), KEYS),
    fault: oneVersion(3),
  };
  kinds[`a tree on a directory in a volume, ${swap}`] = {
    options: { recursive: true },
    target: (root) => join(root, 'v/certs'),
    publish: (root) => changingKeys(volumeAt(root)),
    fault: oneVersion(3),
  };
}

/** A checkout behind a link, replaced as git-sync does. */
function* checkouts(root: string): Steps {
  for (let version = 1; version < 40; version += 1) {
    const tree = join(root, `.worktrees/${version}`);
    mkdirSync(tree, { recursive: true });
    for (const key of ['a', 'b', 'c']) writeFileSync(join(tree, key), `v${version}`);
    symlinkSync(tree, join(root, 'next'));
    yield 'symlink';
    rename(join(root, 'next'), join(root, 'link'));
    yield 'rename';
    const before = join(root, `.worktrees/${version - 1}`);
    for (const key of ['a', 'b', 'c']) {
      rmSync(join(before, key), { force: true });
      yield 'unlink';
    }
    rmSync(before, { recursive: true, force: true });
    yield 'rmdir';
  }
}

for (const recursive of [false, true]) {
  kinds[`a checkout behind a link, ${recursive ? 'as a tree' : 'as a directory'}`] = {
    options: { recursive },
    target: (root) => join(root, 'link'),
    publish: checkouts,
    fault: oneVersion(3),
  };
}

describe('between any two calls of a watcher, a publisher acts', () => {
  test.each(Object.entries(kinds))('%s', async (_, kind) => {
    const found: string[] = [];
    const only = Number(process.env['SEED'] ?? 0);
    const last = only || rounds(40, 2_000);
    for (let seed = only || 1; seed <= last; seed += 1) {
      const random = randomOf(seed);
      const scene = new ScriptedScene();
      mkdirSync(join(scene.root, 'r'));
      const root = join(scene.root, 'r');
      const publisher = kind.publish(root);
      for (let first = Math.floor(random() * 30); first > 0; first -= 1) publisher.next();
      const rate = random() * 0.5;
      let isOn = true;
      const act = (): void => {
        while (isOn && random() < rate) if (publisher.next().done) isOn = false;
      };
      const fs = faultyFileSystem(() => {
        act();
        return undefined;
      });
      await scene.watch(kind.target(root), { fs, ...kind.options });
      for (let at = 0; at < 12; at += 1) {
        await scene.hint();
        await scene.pass(Math.floor(random() * 120));
        act();
      }
      isOn = false;
      await scene.settle();
      for (const { current, cause } of scene.changes) {
        const files = new Map([...current.files].map(([key, { content }]) => [key, String(content)]));
        const fault = kind.fault(files);
        if (fault !== undefined) {
          found.push(`seed ${seed}: ${fault} by ${cause}: ${[...files].join(' ')}`);
          break;
        }
      }
      await scene.watcher.close();
    }
    expect(found).toEqual([]);
  });
});
