/** Which of several writes to a file wins, when one is aborted, and when a rename is retried. */
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';

import {
  atomicWriteFile,
  atomicWriteFileSync,
  type AtomicWriteFileOptions,
  type AtomicWriteResult,
} from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import type { FileSystem } from '../../src/core/file-system.js';
import { debris } from '../support/debris.js';
import { errno } from '../support/faulty-file-system.js';
import { fsWith, interceptedFs, slowFs } from '../support/intercepted-fs.js';
import { ScriptedFs } from '../support/scripted-fs.js';
import { existing, outcome } from './written-file.js';

test('a write that the data source of another write to the same path starts comes after it', async () => {
  const { path } = existing();
  let later: Promise<unknown> | undefined;
  const data = function* (): Generator<string> {
    later = atomicWriteFile(path, 'later');
    yield 'earlier';
  };
  await atomicWriteFile(path, data());
  await later;
  expect(readFileSync(path, 'utf8')).toBe('later');
});

test('with coalesce only the newest waiting call writes, and the others share its result', async () => {
  const { path } = existing();
  const { fs, calls: made } = new ScriptedFs();
  const write = (data: string, more?: AtomicWriteFileOptions): Promise<unknown> =>
    outcome(atomicWriteFile(path, data, { coalesce: true, fs, ...more }));
  const abort = new AbortController();
  const calls = [write('1'), write('22'), write('333'), write('4444', { signal: abort.signal })];
  abort.abort(new Error('not needed any more'));
  const [first, second, third, fourth] = await Promise.all(calls);
  expect(first).toMatchObject({ bytes: 1 });
  expect(second).toMatchObject({ bytes: 3 });
  expect(third).toBe(second);
  expect(fourth).toBe(abort.signal.reason);
  expect(readFileSync(path, 'utf8')).toBe('333');
  expect(made.filter(({ name }) => name === 'rename')).toHaveLength(2);
});

test('with coalesce, if the newest call is aborted while it writes, the one before it writes', async () => {
  const { path } = existing();
  const abort = new AbortController();
  const reason = new Error('not needed any more');
  const hanging = new Readable({ read: () => setImmediate(() => abort.abort(reason)) });
  const calls = [
    atomicWriteFile(path, 'first'),
    atomicWriteFile(path, 'second', { coalesce: true }),
    atomicWriteFile(path, hanging, { coalesce: true, signal: abort.signal }),
  ];
  const [, second, third] = await Promise.all(calls.map(outcome));
  expect(third).toBe(reason);
  expect(second).toMatchObject({ written: true });
  expect(readFileSync(path, 'utf8')).toBe('second');
});

test('with coalesce, a call that is aborted when readers see its content is not undone by an older one', async () => {
  const { path } = existing();
  const abort = new AbortController();
  const calls: Promise<unknown>[] = [];
  const seen: string[] = [];
  const { fs } = new ScriptedFs({
    afterChange: () => {
      const content = readFileSync(path, 'utf8');
      if (seen.at(-1) !== content) seen.push(content);
      if (content === 'newest') abort.abort();
    },
  });
  const write = (data: string, signal?: AbortSignal): void => {
    calls.push(atomicWriteFile(path, data, { coalesce: true, fs, signal }));
  };
  write('first');
  write('older');
  write('newest', abort.signal);
  const [, older, newest] = await Promise.all(calls);
  expect(newest).toMatchObject({ written: true });
  expect(older).toBe(newest);
  expect(readFileSync(path, 'utf8')).toBe('newest');
  expect(seen).not.toContain('older');
});

test('a synchronous write is not undone by asynchronous ones that began before it', async () => {
  const { path, directory } = existing();
  // In memory a write is done when the function returns; not here.
  const fs = slowFs();
  const earlier = [atomicWriteFile(path, 'earlier', { fs }), atomicWriteFile(path, 'waiting', { fs })];
  atomicWriteFileSync(path, 'latest');
  expect((await Promise.all(earlier)).map(({ written }) => written)).toEqual([false, false]);
  expect(readFileSync(path, 'utf8')).toBe('latest');
  expect(debris(directory, 'file')).toEqual([]);
  await atomicWriteFile(path, 'next');
  expect(readFileSync(path, 'utf8')).toBe('next');
});

test('an abort before the rename leaves nothing behind, whatever the write waits for; after it, the write is done', async () => {
  const { path, directory } = existing();
  const reason = new Error('changed my mind');
  // A source that never gives anything.
  const never = new AbortController();
  const hanging = outcome(
    atomicWriteFile(path, new Readable({ read: () => undefined }), { signal: never.signal }),
  );
  const queued = new AbortController();
  const waiting = outcome(atomicWriteFile(path, 'x', { signal: queued.signal }));
  queued.abort(reason);
  expect(await waiting).toBe(reason);
  never.abort(reason);
  expect(await hanging).toBe(reason);
  expect(await outcome(atomicWriteFile(path, 'x', { signal: AbortSignal.abort(reason) }))).toBe(reason);
  expect(debris(directory, 'file')).toEqual([]);

  for (let at = 0; ; at += 1) {
    const abort = new AbortController();
    let calls = 0;
    const afterChange = (): void => {
      if ((calls += 1) === at) abort.abort(reason);
    };
    writeFileSync(path, 'old');
    const { fs } = new ScriptedFs({ afterChange });
    const result = await outcome(atomicWriteFile(path, 'new', { fs, signal: abort.signal }));
    expect(readFileSync(path, 'utf8')).toBe(result === reason ? 'old' : 'new');
    expect(debris(directory, 'file')).toEqual([]);
    if (at > 0 && !abort.signal.aborted) break;
  }
});

test('any number of writes may share one signal', async () => {
  const { directory } = existing();
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  const { signal } = new AbortController();
  const paths = Array.from({ length: 20 }, (_, i) => join(directory, `${i % 2}`));
  await Promise.all(paths.map((path) => atomicWriteFile(path, Readable.from(['a', 'b']), { signal })));
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});

test('a rename that is refused for a moment is retried for a limited time, by the clock option', async () => {
  const { path, directory } = existing();
  const clock = new FakeClock();
  let refused = 0;
  const busy = (times: number): FileSystem =>
    slowFs({
      rename: ({ make }) => {
        if ((refused += 1) <= times) throw errno('EBUSY');
        return make();
      },
    });
  const settled = async (work: Promise<unknown>): Promise<unknown> => {
    let result: unknown;
    void outcome(work).then((value) => (result = value));
    while (result === undefined) await clock.advance(10);
    return result;
  };
  expect(await settled(atomicWriteFile(path, 'new', { fs: busy(2), clock }))).toMatchObject({
    written: true,
  });
  const error = await settled(atomicWriteFile(path, 'newer', { fs: busy(Infinity), clock }));
  expect(error).toMatchObject({ code: 'ERR_WRITE_MOUNTED', step: 'rename', published: false });
  expect((error as Error).message).toMatch(/mounted by itself/);
  expect(readFileSync(path, 'utf8')).toBe('new');
  expect(debris(directory, 'file')).toEqual([]);
  expect(clock.pending).toBe(0);
});

describe('of two paths that lead to one file', () => {
  /** The other path: a link in the directory, or at the end. */
  const spellings: Record<string, (directory: string) => string> = {
    'a link in the path': (directory) => {
      symlinkSync('.', join(directory, 'link'));
      return join(directory, 'link/file');
    },
    'a link at the end': (directory) => {
      symlinkSync('file', join(directory, 'link'));
      return join(directory, 'link');
    },
  };

  test.each(Object.keys(spellings))(
    'an older write by %s does not replace a newer synchronous one',
    async (how) => {
      const { path, directory } = existing();
      const other = spellings[how]?.(directory) ?? '';
      const older = atomicWriteFile(other, 'older', { fs: slowFs() });
      expect(atomicWriteFileSync(path, 'newer').written).toBe(true);
      expect((await older).written).toBe(false);
      expect(readFileSync(path, 'utf8')).toBe('newer');
      expect(debris(directory, 'file', 'link')).toEqual([]);
    },
  );

  test.each(Object.keys(spellings))(
    'an older write by %s does not replace a newer asynchronous one',
    async (how) => {
      const { path, directory } = existing();
      const other = spellings[how]?.(directory) ?? '';
      let goOn!: () => void;
      const published = new Promise<void>((resolve) => (goOn = resolve));
      const data = async function* (): AsyncGenerator<string> {
        await published;
        yield 'older';
      };
      const older = atomicWriteFile(other, data());
      expect((await atomicWriteFile(path, 'newer')).written).toBe(true);
      // It is there already, but what is written now is not older.
      const same = atomicWriteFile(path, 'newer', { ifChanged: true });
      goOn();
      expect((await older).written).toBe(false);
      expect((await same).written).toBe(false);
      expect(readFileSync(path, 'utf8')).toBe('newer');
      expect((await atomicWriteFile(other, 'last')).written).toBe(true);
      expect(readFileSync(path, 'utf8')).toBe('last');
    },
  );
});

test('of two paths that lead to one file, a write by one waits for the rename of the other', async () => {
  const { path, directory } = existing();
  symlinkSync('.', join(directory, 'link'));
  const { write, carryOut } = await requested(path);
  const later = atomicWriteFile(join(directory, 'link/file'), 'later');
  const last = atomicWriteFile(join(directory, 'link/other'), 'x');
  // What it would not wait for has happened by then.
  await last;
  carryOut();
  expect((await write).written).toBe(true);
  expect((await later).written).toBe(true);
  expect(readFileSync(path, 'utf8')).toBe('later');
});

describe('a file of another file system that has the same path', () => {
  /** `/virtual` is a directory that no other file system has. */
  const virtual = (): { fs: FileSystem; read: () => string } => {
    const { directory } = existing();
    const real = (path: unknown): unknown =>
      typeof path === 'string'
        ? path.replace(/^(?:\/proc\/self\/fd\/\d+)?\/virtual(?=\/|$)/, directory)
        : path;
    const fs = interceptedFs(({ args, make }) => make(args.map(real)), 'remote');
    return { fs, read: () => readFileSync(join(directory, 'file'), 'utf8') };
  };

  test('keeps what an older call writes', async () => {
    const [one, other] = [virtual(), virtual()];
    let goOn!: () => void;
    const published = new Promise<void>((resolve) => (goOn = resolve));
    const data = async function* (): AsyncGenerator<string> {
      await published;
      yield 'older';
    };
    const older = atomicWriteFile('/virtual/file', data(), { fs: one.fs });
    expect(atomicWriteFileSync('/virtual/file', 'newer', { fs: other.fs }).written).toBe(true);
    goOn();
    expect((await older).written).toBe(true);
    expect([one.read(), other.read()]).toEqual(['older', 'newer']);
  });

  test('is not what coalesced calls write', async () => {
    const [one, other] = [virtual(), virtual()];
    const write = (data: string, { fs }: { fs: FileSystem }): Promise<unknown> =>
      atomicWriteFile('/virtual/file', data, { fs, coalesce: true });
    await Promise.all([write('running', one), write('one', one), write('other', other)]);
    expect([one.read(), other.read()]).toEqual(['one', 'other']);
  });
});

/** A write whose rename is requested, and is carried out when `carryOut` is called. */
async function requested(path: string): Promise<{ write: Promise<AtomicWriteResult>; carryOut: () => void }> {
  let carryOut!: () => void;
  const allowed = new Promise<void>((resolve) => (carryOut = resolve));
  let isRequested!: () => void;
  const request = new Promise<void>((resolve) => (isRequested = resolve));
  const fs = slowFs({
    rename: async ({ make }) => {
      isRequested();
      await allowed;
      return make();
    },
  });
  const write = atomicWriteFile(path, 'asynchronous', { fs });
  await request;
  return { write, carryOut };
}

describe('a synchronous write while the rename of an asynchronous one is under way', () => {
  test('that fails leaves the other one to be carried out', async () => {
    const { path, directory } = existing();
    const { write, carryOut } = await requested(path);
    const full = fsWith({
      rename: ({ args, make }) => {
        if (String(args[1]).endsWith('/file')) throw errno('EIO', path);
        return make();
      },
    });
    expect(() => atomicWriteFileSync(path, 'synchronous', { fs: full })).toThrow('EIO');
    carryOut();
    expect((await write).written).toBe(true);
    expect(readFileSync(path, 'utf8')).toBe('asynchronous');
    expect(debris(directory, 'file')).toEqual([]);
  });

  test.each([
    ['that has nothing to write', 'old', true],
    ['that writes', 'synchronous', false],
  ])('%s is not undone', async (_, data, ifChanged) => {
    const { path, directory } = existing();
    const before = readFileSync(path, 'utf8');
    const { write, carryOut } = await requested(path);
    atomicWriteFileSync(path, ifChanged ? before : data, { ifChanged });
    carryOut();
    expect((await write).written).toBe(false);
    expect(readFileSync(path, 'utf8')).toBe(ifChanged ? before : data);
    expect(debris(directory, 'file')).toEqual([]);
  });
});
