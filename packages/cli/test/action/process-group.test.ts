import { readFileSync } from 'node:fs';

import { expect, onTestFinished, test } from 'vitest';

import { ProcessGroup } from '../../src/action.js';
import { isRunning } from '../../../../test/support/running.js';

test('when a group that had to be killed has stopped, its processes have ended, large ones too', async () => {
  // The more memory a process has, the longer the kernel takes to end it.
  const large = `
    globalThis.memory = Buffer.alloc(2e8, 1);
    process.on('SIGTERM', () => {});
    setInterval(() => {}, 1e9);
    console.log(process.pid);`;
  const group = new ProcessGroup(
    '/bin/sh',
    ['-c', `trap '' TERM; '${process.execPath}' -e "${large}" & sleep 1000`],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const pid = await new Promise((resolve) => group.child.stdout?.once('data', resolve));
  await group.stop('SIGTERM', 0);
  expect(isRunning(Number(pid))).toBe(false);
});

test('where there are no process groups, as on Windows, stop() ends the command', async () => {
  const kill = process.kill.bind(process);
  onTestFinished(() => void (process.kill = kill));
  process.kill = (pid, signal) => {
    if (pid < 0) throw Object.assign(new Error('kill ESRCH'), { code: 'ESRCH' });
    return kill(pid, signal);
  };
  const group = new ProcessGroup(process.execPath, ['-e', 'setInterval(() => {}, 1e9)'], { stdio: 'ignore' });
  await group.stop('SIGTERM', 1e9);
  expect(isRunning(group.child.pid ?? 0)).toBe(false);
});

test('zombies that nobody reaps are no reason to wait: the group has stopped without them', async () => {
  // What leaves the group does not reap the child that it has there.
  const group = new ProcessGroup(
    '/bin/sh',
    ['-c', '(sleep 1000 & echo child $!; exec setsid sleep 1000) & echo parent $!; exec sleep 1000'],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let output = '';
  group.child.stdout?.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  const pidOf = (name: string): number => Number(new RegExp(`${name} (\\d+)\n`).exec(output)?.[1]);
  const stat = (name: string): string => readFileSync(`/proc/${pidOf(name)}/stat`, 'latin1');
  onTestFinished(() => {
    for (const pid of output.match(/\d+/g) ?? [])
      if (isRunning(Number(pid))) process.kill(Number(pid), 'SIGKILL');
  });
  await expect.poll(() => stat('parent')).toContain('(sleep)');
  // It has been written by then, and perhaps not been read.
  await expect.poll(() => pidOf('child')).toBeGreaterThan(0);
  process.kill(pidOf('child'), 'SIGKILL');
  await expect.poll(() => stat('child')).toContain(') Z');
  // Longer than the test may take.
  await group.stop('SIGTERM', 1e9);
  expect(stat('child')).toContain(') Z');
});
