/** `wait` before and after what it waits for. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { runMain, startMain } from './support/command-line.js';
import { isRunning } from '../../../test/support/running.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

function volume(): KubeletVolume {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ n: '0' });
  return mounted;
}

test('ends immediately if the path exists, and otherwise when it does', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'deep', 'file');
  const program = startMain(['wait', path, '--log-level', 'debug']);
  mkdirSync(join(directory, 'deep'));
  writeFileSync(path, 'x');
  expect(await program.exit).toBe(0);
  expect((await runMain(['wait', path])).code).toBe(0);
});

test('waits for keys of a volume that are not empty, and the command after -- runs when they are there', async () => {
  const mounted = volume();
  const args = ['wait', mounted.directory, '--key', 'k', '--key', 'other', '--json'];
  const program = startMain([...args, '--', '/bin/sh', '-c', 'echo ran; exit 3']);
  await program.until(/"waiting".*\/k","[^"]*\/other"\]/);
  mounted.publish({ n: '0', other: '1' });
  await program.until(/"added":\["other"\]/);
  mounted.publish({ n: '0', other: '1', k: '' });
  await program.until(/"added":\["k"\]/);
  expect(program.stdout).not.toContain('ran');
  mounted.publish({ n: '0', other: '1', k: '1' });
  expect(await program.exit).toBe(3);
  expect((await program.finished()).stdout).toContain('ran');
});

test('ends with 124 at the timeout, and names the missing paths; the command has no timeout', async () => {
  const directory = temporaryDirectory();
  const clock = new FakeClock();
  const flags = ['--timeout', '1h'];
  const waiting = startMain(['wait', directory, join(directory, 'never'), ...flags], { clock });
  await waiting.until(/waiting for .*\/never\n/);
  await clock.advance(3_600_000);
  expect(await waiting.finished()).toMatchObject({
    code: 124,
    stderr: expect.stringMatching(/gave up waiting for .*\/never\n/) as string,
  });
  const script = `echo up; until [ -e ${directory}/go ]; do sleep 0.01; done; exit 5`;
  const running = startMain(['wait', directory, ...flags, '--', '/bin/sh', '-c', script], { clock });
  await running.until(/up/);
  await clock.advance(7_200_000);
  writeFileSync(join(directory, 'go'), '');
  expect(await running.exit).toBe(5);
});

test('SIGTERM ends it with 143, and with it the command that it runs', async () => {
  const directory = temporaryDirectory();
  const waiting = startMain(['wait', join(directory, 'never')]);
  await waiting.until(/waiting for .*never/);
  expect(await waiting.terminated()).toBe(143);
  const running = startMain(['wait', directory, '--', '/bin/sh', '-c', 'echo "up $$"; exec sleep 1000']);
  const [, pid] = await running.until(/up (\d+)/);
  running.signal('SIGTERM');
  expect([await running.exit, isRunning(Number(pid))]).toEqual([143, false]);
});
