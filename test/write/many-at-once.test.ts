/** Many writes at once: they wait for each other instead of running out of descriptors, but not for a hanging server. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { AtomicVolume, atomicWriteFile } from 'resilient-watcher';
import { expect, test } from 'vitest';

import { deviceHere, fsWith } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { outcome } from './written-file.js';

test('writes wait for each other, and one that is aborted while it waits does not write', async () => {
  const directory = temporaryDirectory();
  let [running, most] = [0, 0];
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  const fs = fsWith(
    {
      write: async ({ make }) => {
        most = Math.max(most, (running += 1));
        await released;
        running -= 1;
        return make();
      },
    },
    'disk',
  );
  const abort = new AbortController();
  const writes = Array.from({ length: 20 }, (_, index) =>
    outcome(
      atomicWriteFile(join(directory, `${index}`), 'x', {
        fs,
        signal: index === 10 ? abort.signal : undefined,
      }),
    ),
  );
  abort.abort();
  expect(await writes[10]).toBe(abort.signal.reason);
  release();
  const results = await Promise.all(writes);
  expect(results.filter((result) => (result as { written?: boolean }).written)).toHaveLength(19);
  expect(most).toBeLessThan(10);
});

test.runIf(process.platform === 'linux')(
  'writes to a server that does not answer hold up no writes elsewhere',
  async () => {
    const [server, local] = [temporaryDirectory(), temporaryDirectory()];
    const fs = fsWith(
      {
        each: ({ args, make }) =>
          String(args[0]).startsWith(server) ? new Promise(() => undefined) : make(),
      },
      [`1 0 ${deviceHere()} / / rw - ext4 device rw`, `2 1 0:2 / ${server} rw - nfs4 server rw`],
    );
    for (let index = 0; index < 20; index += 1) {
      void atomicWriteFile(join(server, `${index}`), 'x', { fs });
      void new AtomicVolume(join(server, `volume-${index}`), { fs }).write({ key: 'x' });
    }
    await atomicWriteFile(join(local, 'file'), 'written', { fs });
    expect(readFileSync(join(local, 'file'), 'utf8')).toBe('written');
  },
);

test('a stream whose data depends on other writes does not keep them waiting', async () => {
  const directory = temporaryDirectory();
  const paths = Array.from({ length: 20 }, (_, index) => join(directory, `${index}`));
  async function* source(path: string): AsyncGenerator<string> {
    const { bytes } = await atomicWriteFile(`${path}.part`, 'part');
    yield `${bytes} bytes`;
  }
  await Promise.all(paths.map((path) => atomicWriteFile(path, source(path))));
  for (const path of paths) expect(readFileSync(path, 'utf8')).toBe('4 bytes');
});
