/** What is written: the data, the order of calls, and what is refused. */
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';

import {
  atomicWriteFile,
  atomicWriteFileSync,
  WriteError,
  type AtomicWriteFileOptions,
} from 'resilient-watcher';
import { expect, test } from 'vitest';

import { debris } from '../support/debris.js';
import { errno } from '../support/errno.js';
import { fsWith, type Called } from '../support/intercepted-fs.js';
import { ScriptedFs } from '../support/scripted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { existing, modeOf, outcome } from './written-file.js';

test.each([
  ['a string', 'grüß', Buffer.from('grüß')],
  ['nothing', '', Buffer.alloc(0)],
  ['a Uint8Array', new Uint8Array([1, 2, 3]), Buffer.from([1, 2, 3])],
  ['a typed array, all of its bytes', new Uint16Array([1, 2, 3, 4]), Buffer.from([1, 0, 2, 0, 3, 0, 4, 0])],
  [
    'a view, only what it shows',
    new DataView(new Uint8Array([9, 1, 2, 9]).buffer, 1, 2),
    Buffer.from([1, 2]),
  ],
  ['an iterable', ['a', new Uint8Array([98]), new Uint16Array([99])], Buffer.from('abc\0')],
])('the data may be %s', async (_, data, expected) => {
  const directory = temporaryDirectory();
  const path = join(directory, 'file');
  const result = { path, written: true, bytes: expected.length };
  expect(await atomicWriteFile(path, data)).toEqual(result);
  expect(readFileSync(path)).toEqual(expected);
  expect(atomicWriteFileSync(path, data)).toEqual(result);
  expect(readFileSync(path)).toEqual(expected);
  expect(debris(directory, 'file')).toEqual([]);
});

test.each([false, true])('a data source may reuse its buffer (ifChanged: %s)', async (ifChanged) => {
  const { path } = existing();
  const buffer = Buffer.alloc(3);
  function* source(): Generator<Buffer> {
    for (const text of ['one', 'two']) {
      buffer.write(text);
      yield buffer;
    }
  }
  await atomicWriteFile(path, source(), { ifChanged });
  expect(readFileSync(path, 'utf8')).toBe('onetwo');
});

test('a stream is written chunk by chunk', async () => {
  const path = join(temporaryDirectory(), 'file');
  await atomicWriteFile(path, Readable.from(['a', 'b', Buffer.from('c')]));
  expect(readFileSync(path, 'utf8')).toBe('abc');
});

test.each([
  ['rejects', Readable.from(throwing(new Error('source broke')))],
  ['gives what cannot be written', [1] as unknown as Iterable<string>],
  ['was destroyed', new Readable().on('error', () => undefined).destroy(new Error('source broke'))],
])('a source that %s fails the write, and nothing is left of it', async (_, source) => {
  const { directory, path } = existing();
  expect(await outcome(atomicWriteFile(path, source))).toMatchObject({
    code: 'ERR_WRITE_SOURCE',
    step: 'read-source',
    published: false,
  });
  expect(readFileSync(path, 'utf8')).toBe('old');
  expect(debris(directory, 'file')).toEqual([]);
  await atomicWriteFile(path, 'the queue goes on');
});

async function* throwing(error: Error): AsyncGenerator<string> {
  yield await Promise.resolve('half');
  throw error;
}

test('an iteration whose write has failed is ended, so that its source can release what it holds', async () => {
  const { path } = existing();
  const released: string[] = [];
  function* source(by: string): Generator<string> {
    try {
      yield 'half';
      yield 7 as unknown as string;
    } finally {
      released.push(by);
    }
  }
  await outcome(atomicWriteFile(path, source('atomicWriteFile')));
  expect(() => atomicWriteFileSync(path, source('atomicWriteFileSync'))).toThrow(WriteError);
  expect(released).toEqual(['atomicWriteFile', 'atomicWriteFileSync']);
});

test('one call writes at most what the kernel accepts, whatever the size of the data, and short writes are continued', async () => {
  const path = join(temporaryDirectory(), 'file');
  const { fs, calls } = new ScriptedFs({ longestWriteBytes: 3 * 2 ** 20 });
  const data = Buffer.alloc(20 * 2 ** 20 + 1, 'x');
  await atomicWriteFile(path, data, { fs });
  const lengths = calls.filter(({ name }) => name === 'write').map(({ args }) => args[3] as number);
  expect(Math.max(...lengths)).toBeLessThan(2 ** 31);
  expect(lengths.length).toBe(7);
  expect(readFileSync(path).equals(data)).toBe(true);
});

test.each(['write', 'fsync', 'close', 'rename', 'fchmod'] as const)(
  'a failing %s leaves the old file and no other',
  async (name) => {
    const { directory, path } = existing({ mode: 0o644 });
    const { fs } = new ScriptedFs({ always: { [name]: name === 'fchmod' ? 'EIO' : 'ENOSPC' } });
    expect(await outcome(atomicWriteFile(path, 'new', { fs }))).toBeInstanceOf(WriteError);
    expect(() => atomicWriteFileSync(path, 'new', { fs })).toThrow(WriteError);
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(debris(directory, 'file')).toEqual([]);
  },
);

test('a file whose size differs from what was written is not published', async () => {
  const { path } = existing();
  const fs = fsWith({ write: ({ args }) => args[3] }, 'remote');
  expect(await outcome(atomicWriteFile(path, 'new', { fs }))).toMatchObject({
    step: 'verify',
  });
  expect(readFileSync(path, 'utf8')).toBe('old');
});

const ORDERS = {
  full: ['open', 'fstat', 'open', 'write', 'fstat', 'fsync', 'close', 'rename', 'fsync', 'close'],
  file: ['open', 'fstat', 'open', 'write', 'fstat', 'fsync', 'close', 'rename', 'close'],
  none: ['open', 'fstat', 'open', 'write', 'fstat', 'close', 'rename', 'close'],
} as const;

test.each(Object.entries(ORDERS))('the order of calls for durability "%s"', async (durability, expected) => {
  for (const way of ['async', 'sync'] as const) {
    const directory = temporaryDirectory();
    const path = join(directory, 'file');
    const { fs, calls: made } = new ScriptedFs();
    const options = { durability: durability as keyof typeof ORDERS, fs };
    if (way === 'async') await atomicWriteFile(path, 'x', options);
    else atomicWriteFileSync(path, 'x', options);
    const lookups = new Set(['readdir', 'readlink', 'lstat']);
    const opens = made.filter(({ name }) => name === 'open').map(({ args }) => args);
    const calls = made.map(({ name }) => name).filter((name) => !lookups.has(name));
    expect(calls).toEqual(expected);
    const opened = opens.map(([path]) => path as string);
    const renamed = made.find(({ name }) => name === 'rename')?.args;
    expect(renamed).toEqual([opened[1], path]);
    expect(opened[0]).toBe(directory);
  }
});

test('with ifChanged, an equal file is not touched, and a mode alone is a change', async () => {
  const { path } = existing({ mode: 0o600 });
  const stateOf = () => {
    const { ino, mode, uid, size, mtimeNs, ctimeNs } = lstatSync(path, { bigint: true });
    return { ino, mode, uid, size, mtimeNs, ctimeNs };
  };
  const before = stateOf();
  const directoryBefore = lstatSync(join(path, '..'), { bigint: true }).mtimeNs;
  expect(await atomicWriteFile(path, Readable.from(['o', 'ld']), { ifChanged: true })).toEqual({
    path,
    written: false,
    bytes: 3,
  });
  expect(atomicWriteFileSync(path, 'old', { ifChanged: true }).written).toBe(false);
  expect(stateOf()).toEqual(before);
  expect(lstatSync(join(path, '..'), { bigint: true }).mtimeNs).toBe(directoryBefore);
  expect((await atomicWriteFile(path, 'old', { ifChanged: true, mode: 0o640 })).written).toBe(true);
  expect((await atomicWriteFile(path, 'old', { ifChanged: true })).written).toBe(false);
  expect((await atomicWriteFile(path, 'odd', { ifChanged: true, mode: 'keep' })).written).toBe(true);
  expect(modeOf(path)).toBe('640');
});

test('with ifChanged, a file of many megabytes is compared as a whole', async () => {
  const { path } = existing();
  const data = Buffer.alloc(3 * 2 ** 20, 'x');
  await atomicWriteFile(path, data);
  expect((await atomicWriteFile(path, data, { ifChanged: true })).written).toBe(false);
  data[data.length - 1] = 0;
  expect((await atomicWriteFile(path, data, { ifChanged: true })).written).toBe(true);
});

test.each(['EACCES', 'EAGAIN'])(
  'with ifChanged, a file that cannot be compared (%s) is replaced',
  async (code) => {
    const { path } = existing();
    const fs = fsWith(
      {
        open: ({ args, make }) => {
          if (String(args[0]).endsWith('/file')) throw errno(code, 'open');
          return make();
        },
      },
      'remote',
    );
    expect((await atomicWriteFile(path, 'old', { ifChanged: true, fs })).written).toBe(true);
  },
);

test.each([
  [{ mode: 0o10000 }, /"mode" must be an integer from 0 to 0o7777, .*, or "keep"/],
  [{ mode: 644 }, /"mode" must be .*, in octal \(0o644, not 644\), or "keep", got 644$/],
  [{ mode: 400 }, /"mode" must be .*, in octal/],
  [{ mode: 555 }, /in octal \(0o555, not 555\)/],
  [{ mode: 1777 }, /in octal \(0o1777, not 1777\)/],
  [{ owner: { uid: -1, gid: 0 } }, /"owner" must be an object/],
  [{ durability: 'fast' }, /"durability" must be one of/],
  [{ fsync: true }, /unknown option "fsync"; known are/],
])('an invalid option %j is named in the error', async (options, message) => {
  const path = join(temporaryDirectory(), 'file');
  await expect(atomicWriteFile(path, 'x', options as AtomicWriteFileOptions)).rejects.toThrow(message);
  expect(() => atomicWriteFileSync(path, 'x', options as object)).toThrow(message);
});

test('invalid data is refused without being shown', async () => {
  const path = join(temporaryDirectory(), 'file');
  await expect(atomicWriteFile(path, { token: 'secret' } as never)).rejects.toThrow(
    /must be a string.*got object$/,
  );
  expect(() => atomicWriteFileSync(path, Readable.from(['x']) as never)).toThrow(TypeError);
  expect(existsSync(path)).toBe(false);
});

test.each([
  { name: 'one chunk, in memory', data: () => 'older', place: 'memory' },
  { name: 'one chunk, on a disk', data: () => 'older', place: 'disk' },
  { name: 'one chunk, on a server', data: () => 'older', place: 'remote' },
  { name: 'a stream', data: () => Readable.from(['ol', 'der']), place: 'disk' },
] as const)(
  'a synchronous write is not undone by a rename that waits for a thread: $name',
  async ({ data, place }) => {
    const { directory, path } = existing();
    let requested = (): void => undefined;
    let proceed = (): void => undefined;
    let turn = Promise.resolve();
    const rename = async ({ make }: Called): Promise<unknown> => {
      requested();
      await turn;
      return make();
    };
    const fs = fsWith({ rename: (call) => (call.isSynchronous ? call.make() : rename(call)) }, place);
    turn = new Promise<void>((resolve) => (proceed = resolve));
    const renaming = new Promise<void>((resolve) => (requested = resolve));
    const older = atomicWriteFile(path, data(), { fs });
    // In memory no thread is waited for.
    await Promise.race([renaming, older]);
    atomicWriteFileSync(path, 'newer', { fs });
    proceed();
    const { written } = await older;
    if (place !== 'memory') expect(written).toBe(false);
    expect(readFileSync(path, 'utf8')).toBe('newer');
    expect(debris(directory, 'file')).toEqual([]);
  },
);
