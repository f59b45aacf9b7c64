/** What every backend owes to the watcher, as a suite that each of them runs. */
import { mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { WatchBackend, WatchedDirectory, WatchSubscription } from 'resilient-watcher';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../../support/temporary-directory.js';

/** A backend under test. */
export interface Candidate {
  readonly backend: WatchBackend;
  /** Makes the backend check if the kernel gives no events; for `poll`, advances the clock. */
  nudge?(): Promise<void> | void;
  /** It watches directories, so that it knows when one is new or missing. */
  readonly native: boolean;
}

/** A directory as the watcher names it. */
export function directoryAt(path: string, entries?: string[]): WatchedDirectory {
  const { dev, ino, birthtimeNs } = statSync(path, { bigint: true });
  const identity = `${dev}:${ino}:${birthtimeNs}`;
  return entries ? { path, identity, entries } : { path, identity };
}

/** A subscription whose hints can be waited for. */
export async function subscribe({ backend, nudge }: Candidate): Promise<{
  readonly subscription: WatchSubscription;
  /** What hints were about, in order; undefined where one did not say. */
  readonly paths: readonly (string | undefined)[];
  hints(): number;
  /** Resolves at a hint that comes after this call. */
  hinted(): Promise<void>;
}> {
  let count = 0;
  let waiting: (() => void)[] = [];
  const paths: (string | undefined)[] = [];
  const subscription = await backend.subscribe(
    {
      hint({ path } = {}) {
        count += 1;
        paths.push(path);
        for (const resolve of waiting.splice(0)) resolve();
      },
      down(error) {
        throw error;
      },
    },
    { persistent: true },
  );
  onTestFinished(async () => {
    waiting = [];
    await subscription.close();
  });
  return {
    subscription,
    paths,
    hints: () => count,
    async hinted() {
      const hint = new Promise<void>((resolve) => waiting.push(resolve));
      await nudge?.();
      await hint;
    },
  };
}

/** The directories of a tree as the watcher names them. */
export function treeAt(root: string): WatchedDirectory[] {
  const keys = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name).slice(root.length + 1));
  return ['', ...keys].map((key) => ({
    ...directoryAt(join(root, key)),
    treeRoot: root,
  }));
}

/** Runs the suite for trees. */
export function conformsForTrees(candidate: () => Candidate): void {
  /** A tree that is watched, and what waits for a hint about a path, or about one of those above it, or anything. */
  async function watchTree(root: string) {
    const subscribed = await subscribe(candidate());
    const { subscription, paths, hinted } = subscribed;
    /** As the watcher does: until nothing is newly watched. */
    const setDirectories = async (): Promise<void> => {
      while ((await subscription.setDirectories(treeAt(root))).length > 0);
    };
    const hintsAt = async (path: string, act: () => void): Promise<void> => {
      const from = paths.length;
      let next = hinted();
      act();
      while (!paths.slice(from).some((about) => about === undefined || `${path}/`.startsWith(`${about}/`))) {
        await next;
        next = hinted();
      }
    };
    await setDirectories();
    return { ...subscribed, setDirectories, hintsAt };
  }

  test('a change anywhere in a tree causes a hint with its path', async () => {
    const root = temporaryDirectory();
    const deep = join(root, 'a/b');
    mkdirSync(deep, { recursive: true });
    const { hintsAt, paths } = await watchTree(root);
    for (const directory of [deep, root]) {
      const file = join(directory, 'file');
      const other = join(directory, 'other');
      await hintsAt(file, () => writeFileSync(file, 'one'));
      await hintsAt(file, () => writeFileSync(file, 'two'));
      await hintsAt(other, () => renameSync(file, other));
      await hintsAt(other, () => rmSync(other));
    }
    expect(paths).not.toContain(undefined);
    expect(paths.filter((path) => path === root || path === deep)).toEqual([]);
  });

  test('setting the same tree again opens nothing, whether as the same list or as another', async () => {
    const root = temporaryDirectory();
    mkdirSync(join(root, 'a/b'), { recursive: true });
    const { subscription } = await subscribe(candidate());
    const directories = treeAt(root);
    const opened = await subscription.setDirectories(directories);
    expect([...opened].sort()).toEqual(directories.map(({ path }) => path));
    expect(subscription.setDirectories(directories)).toEqual([]);
    expect(subscription.setDirectories(treeAt(root))).toEqual([]);
  });

  test('a tree and one of its directories, watched separately, both cause hints in whichever order they are opened', async () => {
    const root = temporaryDirectory();
    const inner = join(root, 'inner');
    mkdirSync(join(inner, 'deep'), { recursive: true });
    const plain = await subscribe(candidate());
    const aimPlain = async (): Promise<void> => {
      while ((await plain.subscription.setDirectories([directoryAt(root), directoryAt(inner)])).length > 0);
    };
    await aimPlain();
    const first = await watchTree(root);
    const second = await watchTree(inner);
    await aimPlain();
    await first.setDirectories();
    const file = join(inner, 'deep/file');
    for (const { hintsAt } of [first, second]) await hintsAt(file, () => writeFileSync(file, 'one'));
    const hint = plain.hinted();
    writeFileSync(join(inner, 'file'), '');
    await hint;
  });
}

/** Runs the suite. */
export function conforms(candidate: () => Candidate): void {
  test('setDirectories() returns which directories are newly watched', async () => {
    const { native, ...rest } = candidate();
    const directory = temporaryDirectory();
    const { subscription } = await subscribe({ native, ...rest });
    expect((await subscription.setDirectories([directoryAt(directory)])).length > 0).toBe(native);
    expect(await subscription.setDirectories([directoryAt(directory)])).toEqual([]);
    expect(await subscription.setDirectories([])).toEqual([]);
    expect((await subscription.setDirectories([directoryAt(directory)])).length > 0).toBe(native);
  });

  test('a directory of which more entries are wanted than before is returned, since events about them had no effect', async () => {
    const { native, ...rest } = candidate();
    if (!native) return;
    const directory = temporaryDirectory();
    const { subscription } = await subscribe({ native, ...rest });
    const isReturned = async (entries?: string[]): Promise<boolean> =>
      (await subscription.setDirectories([directoryAt(directory, entries)])).length > 0;
    await isReturned(['a']);
    expect(await isReturned(['a'])).toBe(false);
    expect(await isReturned(['b', 'a'])).toBe(true);
    expect(await isReturned()).toBe(true);
    expect(await isReturned()).toBe(false);
  });

  test('the named entries of an ancestor cause hints; if hints have paths, the other entries cause none', async () => {
    const { native, ...rest } = candidate();
    const directory = temporaryDirectory();
    const { subscription, hinted, paths } = await subscribe({ native, ...rest });
    await subscription.setDirectories([directoryAt(directory, ['etc'])]);
    const etc = join(directory, 'etc');
    let hint = hinted();
    // First, so that a hint about it would come first.
    writeFileSync(join(directory, 'noise'), '');
    rmSync(join(directory, 'noise'));
    mkdirSync(etc);
    await hint;
    if (!native) return;
    while (!paths.includes(etc)) {
      hint = hinted();
      await hint;
    }
    expect(paths.filter((path) => path !== etc)).toEqual([]);
  });

  test('a directory that does not exist leads to an errno error, or to nothing', async () => {
    const { native, ...rest } = candidate();
    const root = temporaryDirectory();
    writeFileSync(join(root, 'file'), '');
    const { subscription } = await subscribe({ native, ...rest });
    const setDirectories = async (path: string): Promise<unknown> => {
      try {
        return await subscription.setDirectories([{ path, identity: '1:1:1' }]);
      } catch (error) {
        return (error as { code?: string }).code;
      }
    };
    expect(await setDirectories(join(root, 'missing'))).toEqual(native ? 'ENOENT' : []);
    expect(await setDirectories(join(root, 'file'))).toEqual(native ? 'ENOTDIR' : []);
    expect((await subscription.setDirectories([directoryAt(root)])).length > 0).toBe(native);
  });
}
