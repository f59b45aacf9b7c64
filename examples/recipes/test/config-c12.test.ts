import { join } from 'node:path';

import { KubeletVolume, type VolumeFiles } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { startExample } from '../../../test/support/program.js';
import { rounds } from '../../../test/support/rounds.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

const STORM = rounds(100, 200);

/** A certificate in one file and its key in the file that it extends, as c12 has it. */
const revision = (number: number): VolumeFiles => ({
  'app.yaml': `extends: ./base.yaml\nserver: { certificate: ${number} }\n$production: { workers: ${number} }\n`,
  'base.yaml': `server: { key: ${number}, host: localhost }\n`,
});

test('what c12 merges from several files is of one revision, and a broken revision is not taken', async () => {
  const mount = join(temporaryDirectory(), 'config');
  const volume = new KubeletVolume(mount);
  volume.publish(revision(0));
  const program = startExample('recipes/config-c12.mjs', {
    CONFIG_DIR: mount,
    NODE_ENV: 'production',
  });
  const first = 'using certificate 0, key 0 of localhost, 0 workers';
  await program.until(new RegExp(first));

  let last = 0;
  for (const swap of ['rename', 'remove'] as const) {
    const storming = new KubeletVolume(mount, { swap });
    for (const end = last + STORM; last < end;) storming.publish(revision((last += 1)));
    await program.until(new RegExp(`using certificate ${last}, key ${last} `));
  }
  const pairs = [...program.output.matchAll(/using certificate (\d+), key (\d+)/g)];
  expect(pairs.filter(([, certificate, key]) => certificate !== key)).toEqual([]);

  for (const broken of [{ 'app.yaml': 'server: {' }, { 'app.yaml': 'server: { certificate: 9999 }' }, {}]) {
    const before = program.output.split('rejected').length;
    volume.publish(broken);
    await expect.poll(() => program.output.split('rejected').length).toBeGreaterThan(before);
  }
  expect(program.output).not.toContain('using certificate 9999');
  volume.publish(revision(10_000));
  await program.until(/using certificate 10000, key 10000 of localhost, 10000 workers/);

  expect(await program.terminated()).toBe(0);
});
