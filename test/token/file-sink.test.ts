import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { fileSink, ServiceAccountToken } from 'resilient-watcher';
import { kubeconfigSink } from 'resilient-watcher/kubernetes';
import { expect, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

const dates = { issuedAt: 0, notBefore: 0, expiresAt: Infinity, notAfter: Infinity };
const token = new ServiceAccountToken('secret', dates);
const { signal } = new AbortController();
const modeOf = (path: string): string => (statSync(path).mode & 0o7777).toString(8);

test.each([{}, { mode: undefined }])(
  'the mode of a file that a sink writes is 0600 whatever the file had before: %j',
  async (options) => {
    for (const sinkTo of [
      (path: string) => fileSink(path, options),
      (path: string) => kubeconfigSink({ path, server: 'https://a', ...options }),
    ]) {
      const path = join(temporaryDirectory(), 'token');
      writeFileSync(path, 'old');
      chmodSync(path, 0o644);
      await sinkTo(path)(token, { signal });
      expect(readFileSync(path, 'utf8')).toContain('secret');
      expect(modeOf(path)).toBe('600');
    }
  },
);

test('a relative path is that of the working directory in which the sink was made', async () => {
  const directory = temporaryDirectory();
  const before = process.cwd();
  process.chdir(directory);
  const sink = fileSink('token');
  process.chdir(before);
  await sink(token, { signal });
  expect(readFileSync(join(directory, 'token'), 'utf8')).toBe('secret');
});

test('a delivery that is given up while its contents are rendered writes nothing', async () => {
  const path = join(temporaryDirectory(), 'token');
  const delivery = new AbortController();
  const render = (): string => {
    delivery.abort(new Error('too late'));
    return 'rendered';
  };
  await expect(fileSink(path, { render })(token, { signal: delivery.signal })).rejects.toThrow('too late');
  expect(existsSync(path)).toBe(false);
});

test('the mode is that of the option, if there is one', async () => {
  const path = join(temporaryDirectory(), 'token');
  await fileSink(path, { mode: 0o640 })(token, { signal });
  expect(modeOf(path)).toBe('640');
});

test.each([
  [
    { createDirectories: true },
    'fileSink: unknown option "createDirectories"; the nearest one is "createDirectory"; known are owner,',
  ],
  [{ mode: '0640' }, 'fileSink: option "mode" must be an integer'],
  [{ signal }, 'fileSink: unknown option "signal"'],
  [{ render: 'token' }, 'fileSink: option "render" must be a function'],
])('an option that is wrong is refused before there is a token: %j', (options, says) => {
  expect(() => fileSink('/tmp/token', options as object)).toThrow(says);
});
