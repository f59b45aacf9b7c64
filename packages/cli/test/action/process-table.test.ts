import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Writable } from 'node:stream';

import { expect, onTestFinished, test } from 'vitest';

import { findProcess } from '../../src/action/process-table.js';

test('a process runs, one that has ended does not', async () => {
  expect(findProcess(process.pid)).toMatchObject({ pid: process.pid, parent: process.ppid, hasEnded: false });
  const child = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await once(child, 'exit');
  expect(findProcess(child.pid ?? 0)).toBe('ended');
});

test.runIf(process.platform === 'linux')('a zombie does not run', async () => {
  // `sleep` does not wait for the child that it inherits, which ends when its input does.
  const parent = spawn('sh', ['-c', 'cat <&3 & echo $!; exec sleep 600 3<&-'], {
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
  });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [line] = (await once(parent.stdio[1] ?? parent, 'data')) as [Buffer];
  const pid = Number(line.toString());
  await expect.poll(() => findProcess(parent.pid ?? 0)).toMatchObject({ command: 'sleep' });
  expect(findProcess(pid)).toMatchObject({ pid, hasEnded: false });
  (parent.stdio[3] as Writable).end();
  await expect.poll(() => findProcess(pid)).toBe('ended');
});
