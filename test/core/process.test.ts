import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Writable } from 'node:stream';

import { expect, onTestFinished, test } from 'vitest';

import { isRunning, readProcessStat } from '../../src/core/process.js';

test('a process runs, one that has ended does not', async () => {
  expect(isRunning(process.pid)).toBe(true);
  const child = spawn(process.execPath, ['--version'], { stdio: 'ignore' });
  await once(child, 'exit');
  expect(isRunning(child.pid ?? 0)).toBe(false);
});

test.runIf(process.platform === 'linux')('a zombie does not run', async () => {
  // `sleep` does not wait for the child that it inherits, which ends when its input does.
  const parent = spawn('sh', ['-c', 'cat <&3 & echo $!; exec sleep 600 3<&-'], {
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
  });
  onTestFinished(() => void parent.kill('SIGKILL'));
  const [line] = (await once(parent.stdio[1] ?? parent, 'data')) as [Buffer];
  const pid = Number(line.toString());
  await expect.poll(() => readProcessStat(parent.pid ?? 0)?.command).toBe('sleep');
  expect(isRunning(pid)).toBe(true);
  (parent.stdio[3] as Writable).end();
  await expect.poll(() => readProcessStat(pid)?.hasEnded).toBe(true);
  expect(isRunning(pid)).toBe(false);
});
