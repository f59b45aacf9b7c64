/** What every backend owes to the watcher, as a suite that each of them runs. */
import { mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { WatchBackend, WatchedDirectory, WatchSubscription } from 'resilient-watcher';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

/** A backend under test. */
export interface Candidate {
  readonly backend: WatchBackend;
  /** Makes it look, where the kernel does not; for `poll`, time passes. */
  nudge?(): Promise<void> | void;
  /** It watches directories, so that it knows when one is new or missing. */
  readonly native: boolean;
}

/** A directory as the watcher names it. */
export function directoryAt(path: string, entries?: string[]): WatchedDirectory {
  const { dev, ino, birthtimeNs } = statSync(path, { bigint: true });
  const identity = `${dev}:${ino}:${birthtimeNs}`;
  return entries ? { path, identity, entries: new Set(entries) } : { path, identity };
}

/** A subscription whose hints can be waited for. */
export async function subscribe({ backend, nudge }: Candidate): Promise<{
  readonly subscription: WatchSubscription;
  readonly written: Set<string>;
  hints(): number;
  /** Resolves at a hint that comes after this call. */
  hinted(): Promise<void>;
}> {
  let count = 0;
  let waiting: (() => void)[] = [];
  const written = new Set<string>();
  const subscription = await backend.subscribe(
    {
      hint(entry) {
        count += 1;
        if (entry !== undefined) written.add(entry);
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
    written,
    hints: () => count,
    async hinted() {
      const hint = new Promise<void>((resolve) => waiting.push(resolve));
      await nudge?.();
      await hint;
    },
  };
}

/** Runs the suite. */
export function conforms(candidate: () => Candidate): void {
  test('what happens in a directory leads to a hint: created, written, replaced, removed', async () => {
    const directory = temporaryDirectory();
    const file = join(directory, 'app.yaml');
    const { subscription, hinted } = await subscribe(candidate());
    await subscription.aim([directoryAt(directory)]);
    for (const happen of [
      () => writeFileSync(file, 'one'),
      () => writeFileSync(file, 'two'),
      () => renameSync(file, join(directory, 'other.yaml')),
      () => renameSync(join(directory, 'other.yaml'), file),
      () => rmSync(file),
    ]) {
      const hint = hinted();
      happen();
      await hint;
    }
  });

  test('aiming says whether a directory is newly watched', async () => {
    const { native, ...rest } = candidate();
    const directory = temporaryDirectory();
    const { subscription } = await subscribe({ native, ...rest });
    expect(await subscription.aim([directoryAt(directory)])).toBe(native);
    expect(await subscription.aim([directoryAt(directory)])).toBe(false);
    expect(await subscription.aim([])).toBe(false);
    expect(await subscription.aim([directoryAt(directory)])).toBe(native);
  });

  test('a directory that is replaced leads to a hint, and is watched anew by the next aim', async () => {
    const { native, ...rest } = candidate();
    const directory = join(temporaryDirectory(), 'etc');
    for (const replace of [
      () => {
        rmSync(directory, { recursive: true });
        mkdirSync(directory);
      },
      () => {
        renameSync(directory, `${directory}.old-${statSync(directory).ino}`);
        mkdirSync(directory);
      },
    ]) {
      mkdirSync(directory, { recursive: true });
      const { subscription, hinted } = await subscribe({ native, ...rest });
      await subscription.aim([directoryAt(directory)]);
      const replaced = hinted();
      replace();
      await replaced;
      expect(await subscription.aim([directoryAt(directory)])).toBe(native);
      const written = hinted();
      writeFileSync(join(directory, 'app.yaml'), 'new');
      await written;
    }
  });

  test('of an ancestor, the entries named lead to a hint', async () => {
    const directory = temporaryDirectory();
    const { subscription, hinted } = await subscribe(candidate());
    await subscription.aim([directoryAt(directory, ['etc'])]);
    const hint = hinted();
    writeFileSync(join(directory, 'noise'), '');
    mkdirSync(join(directory, 'etc'));
    await hint;
  });

  test('a directory that is not there is an errno error, or nothing', async () => {
    const { native, ...rest } = candidate();
    const root = temporaryDirectory();
    writeFileSync(join(root, 'file'), '');
    const { subscription } = await subscribe({ native, ...rest });
    const aim = async (path: string): Promise<unknown> => {
      try {
        return await subscription.aim([{ path, identity: '1:1:1' }]);
      } catch (error) {
        return (error as { code?: string }).code;
      }
    };
    expect(await aim(join(root, 'missing'))).toBe(native ? 'ENOENT' : false);
    expect(await aim(join(root, 'file'))).toBe(native ? 'ENOTDIR' : false);
    expect(await subscription.aim([directoryAt(root)])).toBe(native);
  });

  test('after close() there are no hints', async () => {
    const { nudge, ...rest } = candidate();
    const directory = temporaryDirectory();
    const closed = await subscribe({ ...rest, ...(nudge && { nudge }) });
    const open = await subscribe({ ...rest, ...(nudge && { nudge }) });
    await closed.subscription.aim([directoryAt(directory)]);
    await open.subscription.aim([directoryAt(directory)]);
    await closed.subscription.close();
    const before = closed.hints();
    const hint = open.hinted();
    writeFileSync(join(directory, 'app.yaml'), 'one');
    await hint;
    expect(closed.hints()).toBe(before);
  });
}
