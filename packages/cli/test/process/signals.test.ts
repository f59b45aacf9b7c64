/** Real signals, to the program and to the processes that it signals. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { event } from '../../../../test/support/events.js';
import { startCli } from '../../../../test/support/program.js';
import { isRunning } from '../../../../test/support/running.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

function volume(): KubeletVolume {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ n: '0' });
  return mounted;
}

test('SIGQUIT, the stop signal of nginx images, and SIGTERM leave no process of an action running that ignores them', async () => {
  const mounted = volume();
  const script = `trap '' TERM; (sleep 1000 & echo "pids $$ $!"; wait); sleep 1000`;
  const program = startCli([
    'watch',
    mounted.directory,
    '--json',
    '--stop-timeout',
    '300ms',
    '--exec',
    script,
  ]);
  await event(program, 'ready');
  mounted.publish({ n: '1' });
  const [, ...pids] = await program.until(/pids (\d+) (\d+)/);
  program.child.kill('SIGQUIT');
  await event(program, 'signal');
  expect(await program.terminated()).toBe(0);
  expect(pids.map(Number).filter(isRunning)).toEqual([]);
});

test('the signals that the process gets are handed on to the command of run', async () => {
  const script = `for s in HUP USR1 WINCH; do trap "echo got $s" $s; done; trap 'echo got TERM; exit 7' TERM; echo up; while :; do sleep 0.05; done`;
  const program = startCli(['run', volume().directory, '--', '/bin/sh', '-c', script]);
  await program.until(/^up$/m);
  for (const name of ['HUP', 'USR1', 'WINCH']) {
    program.child.kill(`SIG${name}` as NodeJS.Signals);
    await program.until(new RegExp(`got ${name}`));
  }
  expect(await program.terminated()).toBe(7);
});

test('a process above the program is not found by its name', async () => {
  const name = `resident-parent-${process.pid}`;
  const directory = temporaryDirectory();
  const parent = join(directory, name);
  writeFileSync(parent, '#!/bin/sh\n"$@" &\necho $! > "$0.pid"\nwait\n', { mode: 0o755 });
  const mounted = volume();
  const program = startCli(['watch', mounted.directory, '--json', '--signal', 'KILL', '--process', name], {
    prefix: [parent],
  });
  await event(program, 'ready');
  const pid = (): number => Number(readFileSync(`${parent}.pid`, 'utf8'));
  await expect.poll(pid).toBeGreaterThan(0);
  // With its parent alone, it would go on.
  onTestFinished(() => void process.kill(pid(), 'SIGKILL'));
  mounted.publish({ n: '1' });
  const { message } = await event(program, 'failed');
  expect(message).toContain('there is no such process');
});
