/** A process that may read its own files and the volume, but none of the directories above, sees every change. */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { dirname, join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { linuxOnly } from '../support/namespace.js';
import { WatchingProgram } from '../support/program.js';
import { some } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

linuxOnly();

const APPLICATION = fileURLToPath(new URL('../..', import.meta.url));
const FLAG = process.allowedNodeEnvironmentFlags.has('--permission')
  ? '--permission'
  : '--experimental-permission';

/** Runs Node with permission to read these only. */
function restrictedTo(...paths: string[]): string[] {
  return ['env', `NODE_OPTIONS=${[FLAG, ...paths.map((path) => `--allow-fs-read=${path}`)].join(' ')}`];
}

const targets = [
  { what: 'a key', target: 'key', options: {} },
  { what: 'a volume', target: '.', options: {} },
  { what: 'a tree', target: '.', options: { recursive: true } },
];

test.each(some(targets, 2))(
  '$what is watched where its ancestors are denied',
  async ({ target, options }) => {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
    volume.publish({ key: 'old' });
    const program = new WatchingProgram(
      join(volume.directory, target),
      // The kernel's own hints are to be the reason, not the resync.
      { ...options, resyncIntervalMs: 600_000, backend: 'fs' },
      restrictedTo(APPLICATION, volume.directory),
    );
    const { transcript } = program;
    expect(await transcript.until({ event: 'started' })).toMatchObject({ state: 'watching', backend: 'fs' });
    expect(transcript.of('change')).toMatchObject([{ cause: 'start', files: 'key' }]);
    volume.publish({ key: 'new', other: 'new' });
    if (target === 'key') await transcript.until({ event: 'change', content: 'new', cause: 'fs' });
    else await transcript.until({ event: 'change', files: 'key other', cause: 'fs' });
    expect(transcript.of('error')).toEqual([]);
  },
);

test('a plain file where the mount table is hidden is not taken for one that is mounted by itself', async () => {
  const path = join(temporaryDirectory(), 'file');
  writeFileSync(path, 'old');
  const { transcript } = new WatchingProgram(path, {}, restrictedTo(APPLICATION, dirname(path)));
  await transcript.until({ event: 'started' });
  writeFileSync(path, 'new');
  await transcript.until({ event: 'change', content: 'new' });
  expect(transcript.of('warning')).toEqual([]);
});

test('a target without read permission is unreadable, not missing', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  volume.publish({ key: 'old' });
  const program = new WatchingProgram(volume.directory, {}, restrictedTo(APPLICATION));
  const { message } = await program.transcript.until({ event: 'error' });
  expect(message).toMatch(/^Cannot read ".*": permission denied/);
});
