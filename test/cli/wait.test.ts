/** `wait` before and after what it waits for. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { CommandLines, startCli } from '../support/program.js';
import { isRunning } from '../support/running.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const commands = new CommandLines();

function volume(): KubeletVolume {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ n: '0' });
  return mounted;
}

test('ends immediately if the path exists, and otherwise when it does', async () => {
  const directory = temporaryDirectory();
  const path = join(directory, 'deep', 'file');
  const program = startCli(['wait', path, '--log-level', 'debug']);
  mkdirSync(join(directory, 'deep'));
  writeFileSync(path, 'x');
  expect(await program.exit).toBe(0);
  expect((await commands.run(['wait', path])).code).toBe(0);
});

test('waits for keys of a volume, and the command after -- runs when they are there', async () => {
  const mounted = volume();
  const args = ['wait', mounted.directory, '--key', 'k', '--key', 'other', '--json'];
  const program = startCli([...args, '--', '/bin/sh', '-c', 'echo ran; exit 3']);
  await program.until(/"waiting".*\/k","[^"]*\/other"\]/);
  mounted.publish({ n: '0', other: '' });
  await program.until(/"added":\["other"\]/);
  expect(program.stdout).not.toContain('ran');
  mounted.publish({ n: '0', other: '', k: '' });
  expect(await program.exit).toBe(3);
  expect((await program.finished()).stdout).toContain('ran');
});

test('ends with 124 at the timeout, and names the missing paths; the command has no timeout', async () => {
  const directory = temporaryDirectory();
  const missing = await commands.run(['wait', directory, join(directory, 'never'), '--timeout', '50ms']);
  expect([missing.code, missing.stderr]).toEqual([
    124,
    expect.stringMatching(/gave up waiting for .*\/never\n/),
  ]);
  const command = ['--', '/bin/sh', '-c', 'sleep 3; exit 5'];
  expect((await commands.run(['wait', directory, '--timeout', '2s', ...command])).code).toBe(5);
});

test('SIGTERM ends it with 143, and with it the command that it runs', async () => {
  const directory = temporaryDirectory();
  const waiting = startCli(['wait', join(directory, 'never')]);
  await waiting.until(/waiting for .*never/);
  expect(await waiting.terminated()).toBe(143);
  const running = startCli(['wait', directory, '--', '/bin/sh', '-c', 'echo "up $$"; exec sleep 1000']);
  const [, pid] = await running.until(/up (\d+)/);
  running.child.kill('SIGTERM');
  expect([await running.exit, isRunning(Number(pid))]).toEqual([143, false]);
});
