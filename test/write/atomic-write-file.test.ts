import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  constants,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';

import {
  WriteError,
  atomicWriteFile,
  atomicWriteFileSync,
  isTemporaryName,
  nodeFileSystem,
  type AtomicWriteFileOptions,
  type FileSystem,
} from 'resilient-watcher';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, test, vi } from 'vitest';

import { systemClock } from '../../src/core/clock.js';
import { processWrites } from '../../src/write/write-queue.js';
import { debris } from '../support/debris.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { errno, faultyFileSystem } from '../support/faulty-file-system.js';
import {
  ScriptedFileSystem,
  nameOfTheDead,
  slowFileSystem,
  withoutDescriptor,
} from '../support/scripted-file-system.js';

const isRoot = process.getuid?.() === 0;

const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8);

/** A file that was there before. */
function existing({ content = 'old', mode = 0o640 } = {}): { directory: string; path: string } {
  const directory = temporaryDirectory();
  const path = join(directory, 'file');
  writeFileSync(path, content);
  chmodSync(path, mode);
  return { directory, path };
}

/** What it resolves or rejects with. */
const outcome = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

// ---------------------------------------------------------------------------------------------------- what

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

test('one call writes at most what the kernel accepts, whatever the size of the data, and short writes are continued', async () => {
  const path = join(temporaryDirectory(), 'file');
  const fs = new ScriptedFileSystem({ longestWriteBytes: 3 * 2 ** 20 });
  const data = Buffer.alloc(20 * 2 ** 20 + 1, 'x');
  await atomicWriteFile(path, data, { fs: fs.port });
  const lengths = fs.calls.filter(({ name }) => name === 'write').map(({ args }) => args[3] as number);
  expect(Math.max(...lengths)).toBeLessThan(2 ** 31);
  expect(lengths.length).toBe(7);
  expect(readFileSync(path).equals(data)).toBe(true);
});

test.each(['write', 'fsync', 'close', 'rename', 'fchmod'] as const)(
  'a failing %s leaves the old file and no other',
  async (name) => {
    const { directory, path } = existing({ mode: 0o644 });
    const fs = new ScriptedFileSystem({ always: { [name]: name === 'fchmod' ? 'EIO' : 'ENOSPC' } }).port;
    expect(await outcome(atomicWriteFile(path, 'new', { fs }))).toBeInstanceOf(WriteError);
    expect(() => atomicWriteFileSync(path, 'new', { fs })).toThrow(WriteError);
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(debris(directory, 'file')).toEqual([]);
  },
);

test('a file whose size differs from what was written is not published', async () => {
  const { path } = existing();
  const fs = slowFileSystem({ write: (_fd, _buffer, _offset, length) => Promise.resolve(length) });
  expect(await outcome(atomicWriteFile(path, 'new', { fs }))).toMatchObject({
    step: 'verify',
  });
  expect(readFileSync(path, 'utf8')).toBe('old');
});

// ------------------------------------------------------------------------------------------- order of calls

const ORDERS = {
  full: ['open', 'fstat', 'open', 'write', 'fstat', 'fsync', 'close', 'rename', 'fsync', 'close'],
  file: ['open', 'fstat', 'open', 'write', 'fstat', 'fsync', 'close', 'rename', 'close'],
  none: ['open', 'fstat', 'open', 'write', 'fstat', 'close', 'rename', 'close'],
} as const;

test.each(Object.entries(ORDERS))('the order of calls for durability "%s"', async (durability, expected) => {
  for (const way of ['async', 'sync'] as const) {
    const directory = temporaryDirectory();
    const path = join(directory, 'file');
    const fs = new ScriptedFileSystem();
    const options = { durability: durability as keyof typeof ORDERS, fs: fs.port };
    if (way === 'async') await atomicWriteFile(path, 'x', options);
    else atomicWriteFileSync(path, 'x', options);
    const lookups = new Set(['readdir', 'statfs', 'stat', 'lstat']);
    const opens = fs.calls.filter(({ name }) => name === 'open').map(({ args }) => args);
    // On a disk, the file is opened with O_SYNC if the write must be durable.
    const isDurableAsWritten = durability !== 'none' && (Number(opens[1]?.[1]) & constants.O_SYNC) !== 0;
    const all: readonly string[] = expected;
    const withoutFsync = all.filter((_, index) => index !== all.indexOf('fsync'));
    const calls = fs.names.filter((name) => !lookups.has(name));
    expect(calls).toEqual(isDurableAsWritten ? withoutFsync : expected);
    const opened = opens.map(([path]) => path as string);
    const renamed = fs.calls.find(({ name }) => name === 'rename')?.args;
    expect(renamed).toEqual([opened[1], path]);
    expect(opened[0]).toBe(directory);
  }
});

// ------------------------------------------------------------------------------------------- mode and owner

test('the mode is the option, else that of the file, else 0600, whatever the umask', async () => {
  const { path } = existing({ mode: 0o604 });
  const umask = process.umask(0o277);
  try {
    await atomicWriteFile(path, 'kept');
    expect(modeOf(path)).toBe('604');
    chmodSync(path, 0o664);
    await atomicWriteFile(path, 'kept', { mode: 'keep' });
    expect(modeOf(path)).toBe('664');
    await atomicWriteFile(path, 'less for the group, in case of an ACL');
    expect(modeOf(path)).toBe('644');
    atomicWriteFileSync(path, 'given', { mode: 0o4751 });
    expect(modeOf(path)).toBe('4751');
    await atomicWriteFile(`${path}.new`, 'default');
    expect(modeOf(`${path}.new`)).toBe('600');
  } finally {
    process.umask(umask);
  }
});

test.skipIf(!isRoot)(
  'the owner is the option, else that of the file (only root can give files away)',
  async () => {
    const { path } = existing({ mode: 0o644 });
    chownSync(path, 1234, 2345);
    await atomicWriteFile(path, 'kept');
    expect(statSync(path)).toMatchObject({ uid: 1234, gid: 2345 });
    await atomicWriteFile(path, 'given', { owner: { uid: 1, gid: 2 } });
    expect(statSync(path)).toMatchObject({ uid: 1, gid: 2 });
  },
);

test('an owner that cannot be kept is ignored, one that was requested is an error', async () => {
  const { directory, path } = existing({ mode: 0o4755 });
  const refusing = new ScriptedFileSystem({ always: { fchown: 'EPERM' } }).port;
  const somebodyElses = slowFileSystem({
    ...refusing,
    lstat: async (of) => Object.assign(await nodeFileSystem.lstat(of), { uid: 4321n }),
  });
  await atomicWriteFile(path, 'new', { fs: somebodyElses });
  // A set-uid bit means its owner.
  expect(modeOf(path)).toBe('755');
  const asked = atomicWriteFile(path, 'newer', { fs: refusing, owner: { uid: 4321, gid: 1 } });
  expect(await outcome(asked)).toMatchObject({ step: 'chown', code: 'ERR_WRITE_ACCESS' });
  expect(debris(directory, 'file')).toEqual([]);
});

test('a file is accessible to its owner only until it is complete', async () => {
  const { path, directory } = existing({ mode: 0o666 });
  const modes: string[] = [];
  const afterChange = (): void => {
    for (const name of readdirSync(directory).filter(isTemporaryName))
      modes.push(modeOf(join(directory, name)));
  };
  await atomicWriteFile(path, 'secret', { fs: new ScriptedFileSystem({ afterChange }).port });
  expect(modes).toContain('600');
  expect(modes.slice(0, modes.lastIndexOf('600'))).not.toContain('666');
  expect(modeOf(path)).toBe('666');
});

test("the caller's options are not touched", async () => {
  const options = Object.freeze({ mode: 0o640 });
  const { path } = existing();
  await atomicWriteFile(path, 'a', options);
  expect(options).toEqual({ mode: 0o640 });
});

// ---------------------------------------------------------------------------------------------------- where

test('a link is followed to its target, through every directory on the real path', async () => {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'a/b'), { recursive: true });
  mkdirSync(join(directory, 'c'));
  symlinkSync('a/b', join(directory, 'short'));
  symlinkSync('../../c/real', join(directory, 'a/b/link'));
  writeFileSync(join(directory, 'c/real'), 'old');
  const { path } = await atomicWriteFile(join(directory, 'short/link'), 'new');
  expect(readFileSync(join(directory, 'c/real'), 'utf8')).toBe('new');
  expect(readFileSync(path, 'utf8')).toBe('new');
  expect(readdirSync(join(directory, 'c'))).toEqual(['real']);
});

test('a link can be replaced or refused, and a loop is an error', async () => {
  const directory = temporaryDirectory();
  const [link, loop] = [join(directory, 'link'), join(directory, 'loop')];
  symlinkSync('real', link);
  symlinkSync('loop', loop);
  expect(await outcome(atomicWriteFile(link, 'x', { symlink: 'error' }))).toMatchObject({
    code: 'ERR_WRITE_SYMLINK',
    step: 'resolve',
  });
  expect(await outcome(atomicWriteFile(loop, 'x'))).toMatchObject({ code: 'ERR_WRITE_SYMLINK' });
  await atomicWriteFile(link, 'x', { symlink: 'replace' });
  expect(lstatSync(link).isFile()).toBe(true);
  expect(existsSync(join(directory, 'real'))).toBe(false);
});

test('a name may have the maximum length', async () => {
  const directory = temporaryDirectory();
  const name = 'ä'.repeat(127) + 'x';
  await atomicWriteFile(join(directory, name), 'long');
  expect(readdirSync(directory)).toEqual([name]);
});

test('missing directories are created on request, and made durable from the top', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'a/b/file');
  expect(await outcome(atomicWriteFile(path, 'x'))).toMatchObject({ code: 'ERR_WRITE_NO_DIRECTORY' });
  const fs = new ScriptedFileSystem();
  await atomicWriteFile(path, 'x', { createDirectory: true, fs: fs.port });
  expect(readFileSync(path, 'utf8')).toBe('x');
  const opened = fs.calls.filter(
    ({ name, args }) => name === 'open' && !isTemporaryName(String(args[0]).split('/').at(-1) ?? ''),
  );
  expect(opened.map(({ args }) => args[0]).slice(-3)).toEqual([
    directory,
    join(directory, 'a'),
    join(directory, 'a/b'),
  ]);
});

const refusals: readonly (readonly [string, (path: string) => unknown, string])[] = [
  ['a directory', (path) => mkdirSync(path), 'ERR_WRITE_NOT_FILE'],
  ['a pipe', (path) => execFileSync('mkfifo', [path]), 'ERR_WRITE_NOT_FILE'],
  ['a link to a device', (path) => symlinkSync('/dev/null', path), 'ERR_WRITE_NOT_FILE'],
];
test.each(refusals)('%s at the path is refused and left as it is', async (_, make, code) => {
  const directory = temporaryDirectory();
  const path = join(directory, 'file');
  make(path);
  expect(await outcome(atomicWriteFile(path, 'x'))).toMatchObject({
    code,
    step: 'resolve',
    published: false,
  });
  expect(() => atomicWriteFileSync(path, 'x')).toThrow(WriteError);
  expect(debris(directory, 'file')).toEqual([]);
});

test.each([
  ['EROFS', 'open', 'ERR_WRITE_READ_ONLY', /read-only/],
  ['ENOSPC', 'write', 'ERR_WRITE_NO_SPACE', /no space/],
  ['EDQUOT', 'fsync', 'ERR_WRITE_NO_SPACE', /quota/],
  ['EXDEV', 'rename', 'ERR_WRITE_CROSS_DEVICE', /several file systems/],
  ['EACCES', 'open', 'ERR_WRITE_ACCESS', /permission denied/],
  ['EIO', 'fsync', 'ERR_WRITE_IO', /EIO/],
] as const)('%s at %s becomes %s', async (errno, name, code, message) => {
  const { path } = existing();
  const fs = new ScriptedFileSystem({ always: { [name]: errno } }).port;
  // In two parts, so that fsync makes them durable on every file system.
  const error = await outcome(atomicWriteFile(path, ['a secret', ' in two'], { fs, durability: 'file' }));
  expect(error).toMatchObject({ name: 'WriteError', code, path, published: false, cause: { code: errno } });
  expect((error as Error).message).toMatch(message);
  expect((error as Error).message).toContain(`"${path}"`);
  expect((error as Error).message).not.toContain('a secret');
});

test('if the directory cannot be synced after the rename, the error says that readers see the file', async () => {
  const { path } = existing();
  let synced = 0;
  const fs = slowFileSystem({
    fsync: (fd) => ((synced += 1) === 2 ? Promise.reject(errno('EIO')) : nodeFileSystem.fsync(fd)),
  });
  const error = await outcome(atomicWriteFile(path, ['n', 'ew'], { fs }));
  expect(error).toMatchObject({ step: 'sync-directory', published: true });
  expect(readFileSync(path, 'utf8')).toBe('new');
});

test.each(['EINVAL', 'ENOTSUP', 'EPERM'])(
  'a file system without fsync (%s) is still written',
  async (errno) => {
    const { path } = existing();
    await atomicWriteFile(path, 'new', { fs: new ScriptedFileSystem({ always: { fsync: errno } }).port });
    expect(readFileSync(path, 'utf8')).toBe('new');
  },
);

// ---------------------------------------------------------------------------------------------- only if changed

test('with ifChanged, an equal file is not touched, and a mode alone is a change', async () => {
  const { path } = existing({ mode: 0o600 });
  const before = lstatSync(path, { bigint: true });
  const directoryBefore = lstatSync(join(path, '..'), { bigint: true }).mtimeNs;
  expect(await atomicWriteFile(path, Readable.from(['o', 'ld']), { ifChanged: true })).toEqual({
    path,
    written: false,
    bytes: 3,
  });
  expect(atomicWriteFileSync(path, 'old', { ifChanged: true }).written).toBe(false);
  expect(lstatSync(path, { bigint: true })).toEqual({
    ...before,
    atimeNs: expect.anything() as bigint,
    atimeMs: expect.anything() as bigint,
    atime: expect.anything() as Date,
  });
  expect(lstatSync(join(path, '..'), { bigint: true }).mtimeNs).toBe(directoryBefore);
  expect((await atomicWriteFile(path, 'old', { ifChanged: true, mode: 0o640 })).written).toBe(true);
  expect((await atomicWriteFile(path, 'old', { ifChanged: true })).written).toBe(false);
  expect((await atomicWriteFile(path, 'odd', { ifChanged: true, mode: 'keep' })).written).toBe(true);
  expect(modeOf(path)).toBe('640');
});

test.each(['EACCES', 'EAGAIN'])(
  'with ifChanged, a file that cannot be compared (%s) is replaced',
  async (code) => {
    const { path } = existing();
    const { port } = new ScriptedFileSystem();
    const refusing = (name: string): Partial<FileSystem> => ({
      open: (at, ...how) => (at.endsWith(name) ? Promise.reject(errno(code, 'open')) : port.open(at, ...how)),
    });
    const fs = { ...port, sync: undefined, ...refusing('/file') } as unknown as FileSystem;
    expect((await atomicWriteFile(path, 'old', { ifChanged: true, fs })).written).toBe(true);
  },
);

test('as docs/atomic-writes.md says, another name of the old file keeps the old content', async () => {
  const { path } = existing();
  linkSync(path, `${path}.hard`);
  await atomicWriteFile(path, 'new');
  expect(readFileSync(`${path}.hard`, 'utf8')).toBe('old');
});

// ---------------------------------------------------------------------------------------------------- when

test('calls for one path run one after another, the last one wins, and no state remains', async () => {
  const { directory, path } = existing();
  const results = await Promise.all(Array.from({ length: 50 }, (_, i) => atomicWriteFile(path, `${i}`)));
  expect(results.every(({ written }) => written)).toBe(true);
  expect(readFileSync(path, 'utf8')).toBe('49');
  expect(debris(directory, 'file')).toEqual([]);
  expect(processWrites.size).toBe(0);
});

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
  expect(processWrites.size).toBe(0);
});

test('with coalesce only the newest waiting call writes, and the others share its result', async () => {
  const { path } = existing();
  const fs = new ScriptedFileSystem();
  const write = (data: string, more?: AtomicWriteFileOptions): Promise<unknown> =>
    outcome(atomicWriteFile(path, data, { coalesce: true, fs: fs.port, ...more }));
  const abort = new AbortController();
  const calls = [write('1'), write('22'), write('333'), write('4444', { signal: abort.signal })];
  abort.abort(new Error('not needed any more'));
  const [first, second, third, fourth] = await Promise.all(calls);
  expect(first).toMatchObject({ bytes: 1 });
  expect(second).toMatchObject({ bytes: 3 });
  expect(third).toBe(second);
  expect(fourth).toBe(abort.signal.reason);
  expect(readFileSync(path, 'utf8')).toBe('333');
  expect(fs.names.filter((name) => name === 'rename')).toHaveLength(2);
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

test('a synchronous write is not undone by asynchronous ones that began before it', async () => {
  const { path, directory } = existing();
  // In memory a write is done when the function returns; not here.
  const fs = slowFileSystem({});
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
    const fs = new ScriptedFileSystem({ afterChange }).port;
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
    slowFileSystem({
      rename: (from, to) =>
        (refused += 1) <= times ? Promise.reject(errno('EBUSY')) : nodeFileSystem.rename(from, to),
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

// ------------------------------------------------------------------------------------------- orphaned files

const OTHER_CONTAINER = `.rw-${'ab'.repeat(8)}.zzz_zzz.1.5.${'0'.repeat(32)}.tmp`;

test('files left by a dead process are swept by the next write, those of a possibly live one are not', async () => {
  const { path, directory } = existing();
  const dead = nameOfTheDead('file');
  const strangers = ['.rw-mine', '.file.tmp', OTHER_CONTAINER];
  for (const name of [dead, ...strangers]) writeFileSync(join(directory, name), 'half');
  await atomicWriteFile(path, 'new');
  expect(debris(directory, 'file').sort()).toEqual([...strangers].sort());
  renameSync(join(directory, OTHER_CONTAINER), join(directory, dead));
  atomicWriteFileSync(path, 'newer', { sweep: false });
  expect(readdirSync(directory)).toContain(dead);
  // As by another process: this one has swept the directory a moment ago.
  atomicWriteFileSync(path, 'newest', { fs: { ...nodeFileSystem } });
  expect(readdirSync(directory)).not.toContain(dead);
});

test.each(['ENOSPC', 'EDQUOT'])(
  'the files of a dead process are swept when a write fails with %s, because they take space',
  async (code) => {
    const { path, directory } = existing();
    const fs = new ScriptedFileSystem({ always: { write: code } }).port;
    for (const write of [atomicWriteFile, atomicWriteFileSync]) {
      writeFileSync(join(directory, nameOfTheDead('file')), 'half');
      await expect((async () => write(path, 'new', { fs: { ...fs } }))()).rejects.toMatchObject({
        code: 'ERR_WRITE_NO_SPACE',
        step: 'write',
      });
      expect(debris(directory, 'file')).toEqual([]);
    }
  },
);

test('a file of another container counts as abandoned when it was not touched for a day by the clock of the file system', async () => {
  const { path, directory } = existing();
  const orphan = join(directory, OTHER_CONTAINER);
  writeFileSync(orphan, 'half');
  const HOUR_NS = 3_600_000_000_000n;
  const aged = (hours: bigint): FileSystem => {
    return slowFileSystem({
      lstat: async (of) => {
        const stat = await nodeFileSystem.lstat(of);
        if (withoutDescriptor(of) === orphan) {
          stat.ctimeNs -= hours * HOUR_NS;
          stat.mtimeNs = 0n;
        }
        return stat;
      },
    });
  };
  await atomicWriteFile(path, '1', { fs: aged(23n) });
  expect(existsSync(orphan)).toBe(true);
  await atomicWriteFile(path, '2', { fs: aged(25n) });
  expect(existsSync(orphan)).toBe(false);
});

test.each(['write', 'open'] as const)(
  'a day-old file of another container is removed when %s finds a local disk full, although the time of the disk is unknown',
  async (name) => {
    const { path, directory } = existing();
    const orphan = join(directory, OTHER_CONTAINER);
    const fs = faultyFileSystem((called, args) => {
      const isToWrite = called === 'open' && ((args[1] as number) & constants.O_CREAT) !== 0;
      if (called === name && (name === 'write' || isToWrite)) throw errno('ENOSPC');
      return undefined;
    });
    const DAY_MS = 24 * 3_600_000;
    for (const write of [atomicWriteFile, atomicWriteFileSync]) {
      writeFileSync(orphan, 'half');
      await expect((async () => write(path, 'new', { fs }))()).rejects.toMatchObject({
        step: name === 'open' ? 'create' : 'write',
      });
      expect(existsSync(orphan)).toBe(true);
      const clock = vi.spyOn(systemClock, 'now').mockReturnValue(Date.now() + DAY_MS + 60_000);
      await expect((async () => write(path, 'new', { fs }))()).rejects.toThrow();
      clock.mockRestore();
      expect(existsSync(orphan)).toBe(false);
    }
  },
);

test('a writer that waits for its data touches its file every hour', async () => {
  const { path, directory } = existing();
  const clock = new FakeClock();
  let give: ((chunk: string | undefined) => void) | undefined;
  async function* slow(): AsyncGenerator<string> {
    for (;;) {
      const chunk = await new Promise<string | undefined>((resolve) => (give = resolve));
      if (chunk === undefined) return;
      yield chunk;
    }
  }
  const writing = atomicWriteFile(path, slow(), { clock });
  while (clock.pending === 0) await clock.advance(0);
  const [name = ''] = debris(directory, 'file');
  expect(isTemporaryName(name)).toBe(true);
  const touched = (): bigint => lstatSync(join(directory, name), { bigint: true }).ctimeNs;
  const before = touched();
  while (touched() === before) await clock.advance(3_600_000);
  // Another writer of the same directory leaves it alone.
  await atomicWriteFile(`${path}.other`, 'x');
  expect(readdirSync(directory)).toContain(name);
  give?.('new');
  while (readFileSync(path, 'utf8') !== 'new') {
    give?.(undefined);
    await clock.advance(0);
  }
  await writing;
  expect(clock.pending).toBe(0);
});

// ------------------------------------------------------------------------------------------------ arguments

test.each([
  [{ mode: 0o10000 }, /"mode" must be an integer from 0 to 0o7777 or "keep"/],
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
