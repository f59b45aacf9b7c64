import { expect, test } from 'vitest';

import { ProcessGroup } from '../../src/action.js';
import { systemClock } from '../../src/core/clock.js';
import { isRunning } from '../support/running.js';

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
    systemClock,
  );
  const pid = await new Promise((resolve) => group.child.stdout?.once('data', resolve));
  await group.stop('SIGTERM', 0);
  expect(isRunning(Number(pid))).toBe(false);
});
