/** Streams that fail: the write rejects, and the process goes on. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

import { atomicWriteFile } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { temporaryDirectory } from '../../support/temporary-directory.js';

/** Runs a program that imports the package; returns what it prints. It fails if the program ends with an error. */
function outputOf(program: string): string {
  const path = JSON.stringify(join(temporaryDirectory(), 'file'));
  const source = `
    import { createReadStream } from 'node:fs';
    import { atomicWriteFile } from 'resilient-watcher';
    const path = ${path};
    const codeOf = (writing) => writing.then(() => 'written', ({ name, code, cause }) => (name === 'WriteError' ? \`\${code} (\${cause.code})\` : name));
    ${program}`;
  const cwd = fileURLToPath(new URL('../../..', import.meta.url));
  return execFileSync(process.execPath, ['--input-type=module', '-e', source], {
    cwd,
    encoding: 'utf8',
  }).trim();
}

test('a stream that fails while its write waits for another one fails the write alone', () => {
  const output = outputOf(`
    const failing = createReadStream('/no/such/file');
    // events.once() would listen for errors.
    const failed = new Promise((resolve) => failing.once('close', resolve));
    async function* slow() {
      yield 'one';
      await failed;
      yield 'two';
    }
    const first = codeOf(atomicWriteFile(path, slow()));
    const second = codeOf(atomicWriteFile(path, failing));
    console.log(await first, '/', await second);`);
  expect(output).toBe('written / ERR_WRITE_SOURCE (ENOENT)');
});

test('a stream that fails before, during or after its write was refused fails nothing else', () => {
  const output = outputOf(`
    const failing = () => createReadStream('/no/such/file');
    const refused = [
      codeOf(atomicWriteFile(path, failing())),
      codeOf(atomicWriteFile(path, failing(), { signal: AbortSignal.abort() })),
      codeOf(atomicWriteFile(path, failing(), { mode: -1 })),
      codeOf(atomicWriteFile(path + '/below', failing())),
    ];
    console.log((await Promise.all(refused)).join(', '));`);
  expect(output).toBe('ERR_WRITE_SOURCE (ENOENT), AbortError, TypeError, ERR_WRITE_NO_DIRECTORY (ENOENT)');
});

test('a stream is destroyed when its write ends early: aborted, refused, or never begun', async () => {
  const path = join(temporaryDirectory(), 'file');
  const abortion = new AbortController();
  const { signal } = abortion;
  const source = new PassThrough();
  const streams = {
    read: new PassThrough(),
    waiting: new PassThrough(),
    late: new PassThrough(),
    refused: new PassThrough(),
  };
  const writes = [
    atomicWriteFile(path, streams.read, { signal }),
    atomicWriteFile(path, streams.waiting, { signal }),
    atomicWriteFile(path, source),
    atomicWriteFile(join(path, 'below'), streams.refused),
  ];
  streams.read.write('begun');
  abortion.abort();
  writes.push(atomicWriteFile(path, streams.late, { signal }));
  source.end('complete');
  const outcomes = (await Promise.allSettled(writes)).map(({ status }) => status);
  expect(outcomes).toEqual(['rejected', 'rejected', 'fulfilled', 'rejected', 'rejected']);
  expect(Object.values(streams).map(({ destroyed }) => destroyed)).toEqual([true, true, true, true]);
  expect(readFileSync(path, 'utf8')).toBe('complete');
});

test('a stream that was read by somebody else does not empty the file', async () => {
  const path = join(temporaryDirectory(), 'file');
  await atomicWriteFile(path, 'old');
  const stream = Readable.from(['read before']);
  await text(stream);
  await expect(atomicWriteFile(path, stream)).rejects.toMatchObject({ code: 'ERR_WRITE_SOURCE' });
  expect(readFileSync(path, 'utf8')).toBe('old');
  await atomicWriteFile(path, Readable.from([]));
  expect(readFileSync(path, 'utf8')).toBe('');
});
