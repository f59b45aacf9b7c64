/** Which of several writes to a file wins, when one is aborted, and when a rename is retried. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';

import { atomicWriteFile, atomicWriteFileSync } from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { debris } from '../support/debris.js';
import { errno } from '../support/errno.js';
import { fsWith, type Called } from '../support/intercepted-fs.js';
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

test('a synchronous write is not undone by asynchronous ones that began before it', async () => {
  const { path, directory } = existing();
  // In memory a write is done when the function returns; not here.
  const fs = fsWith({}, 'remote');
  const earlier = [atomicWriteFile(path, 'earlier', { fs }), atomicWriteFile(path, 'waiting', { fs })];
  atomicWriteFileSync(path, 'latest', { fs });
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
    fsWith(
      {
        rename: ({ make }) => {
          if ((refused += 1) <= times) throw errno('EBUSY');
          return make();
        },
      },
      'remote',
    );
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

describe('a file of another file system that has the same path', () => {
  /** `/virtual` is a directory that no other file system has. */
  const virtual = (): { fs: FileSystem; read: () => string } => {
    const { directory } = existing();
    const real = (path: unknown): unknown =>
      typeof path === 'string'
        ? path.replace(/^(?:\/proc\/self\/fd\/\d+)?\/virtual(?=\/|$)/, directory)
        : path;
    const fs = fsWith({ each: ({ args, make }) => make(args.map(real)) }, 'remote');
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
});

describe('a synchronous write while the rename of an asynchronous one is under way', () => {
  /** An asynchronous write, and what makes a synchronous one while its rename waits for the thread pool. */
  const beside = (path: string, synchronous: (fs: FileSystem) => void): Promise<unknown> => {
    const fs = fsWith(
      {
        rename: ({ isSynchronous, make }) => {
          if (!isSynchronous) synchronous(fs);
          return make();
        },
      },
      'remote',
    );
    return outcome(atomicWriteFile(path, 'asynchronous', { fs }));
  };

  test('writes in spite of ifChanged, because the content is not to change', async () => {
    const { path, directory } = existing();
    const result = await beside(path, (fs) => {
      expect(atomicWriteFileSync(path, 'old', { fs, ifChanged: true }).written).toBe(true);
    });
    expect(result).toMatchObject({ written: false });
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(debris(directory, 'file')).toEqual([]);
  });

  test('leaves it alone, if it fails before it has anything to publish', async () => {
    const { path, directory } = existing();
    const result = await beside(path, (fs) => {
      const failing = function* (): Generator<string> {
        yield 'synchronous';
        throw new Error('no data');
      };
      expect(() => atomicWriteFileSync(path, failing(), { fs })).toThrow('no data');
    });
    expect(result).toMatchObject({ written: true });
    expect(readFileSync(path, 'utf8')).toBe('asynchronous');
    expect(debris(directory, 'file')).toEqual([]);
  });

  test('makes it fail, if its own rename fails', async () => {
    const { path, directory } = existing();
    let isRefused = false;
    const rename = ({ isSynchronous, make }: Called): unknown => {
      if (isSynchronous) throw errno('EIO', path);
      if (!isRefused) expect(() => atomicWriteFileSync(path, 'synchronous', { fs })).toThrow('EIO');
      isRefused = true;
      return make();
    };
    const fs: FileSystem = fsWith({ rename }, 'disk');
    const waiting = [atomicWriteFile(path, 'under way', { fs }), atomicWriteFile(path, 'waiting', { fs })];
    const [first, second] = await Promise.all(waiting.map(outcome));
    expect(first).toMatchObject({ name: 'WriteError', step: 'rename', published: false });
    expect(second).toMatchObject({ written: true });
    expect(readFileSync(path, 'utf8')).toBe('waiting');
    expect(debris(directory, 'file')).toEqual([]);
  });
});
