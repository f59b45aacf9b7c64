import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { expect, test } from 'vitest';

import { temporaryDirectory } from '../../support/temporary-directory.js';

test.skipIf(process.platform === 'win32')('200 files are written with hardly any descriptors left', () => {
  const program = `
    import { atomicWriteFile } from 'resilient-watcher';
    const paths = Array.from({ length: 200 }, (_, index) => ${JSON.stringify(temporaryDirectory())} + '/' + index);
    const outcomes = await Promise.all(paths.map((path) => atomicWriteFile(path, path).catch(({ message }) => message)));
    console.log(JSON.stringify([...new Set(outcomes.map((outcome) => outcome.written ?? outcome))]));`;
  const cwd = fileURLToPath(new URL('../../..', import.meta.url));
  const command = [
    '-c',
    'ulimit -n 34; exec "$0" "$@"',
    process.execPath,
    '--input-type=module',
    '-e',
    program,
  ];
  expect(JSON.parse(execFileSync('sh', command, { cwd, encoding: 'utf8' }))).toEqual([true]);
});
