/** Streams that fail: the write rejects, and the process goes on. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

/** Runs a program that imports the package; returns what it prints. It fails if the program ends with an error. */
function outputOf(program: string): string {
  const path = JSON.stringify(join(temporaryDirectory(), 'file'));
  const source = `
    import { createReadStream } from 'node:fs';
    import { atomicWriteFile } from 'resilient-watcher';
    const path = ${path};
    const codeOf = (writing) => writing.then(() => 'written', ({ name, code, cause }) => (name === 'WriteError' ? \`\${code} (\${cause.code})\` : name));
    ${program}`;
  const cwd = fileURLToPath(new URL('../..', import.meta.url));
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
