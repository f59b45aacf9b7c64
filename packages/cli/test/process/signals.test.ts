/** Real signals, to the program and to the processes that it signals. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { event, linesOf, succeededWith } from '../../../../test/support/events.js';
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

describe('a PID that now belongs to another process is not signaled', () => {
  /** Starts the program for a process, which ends before or after that, and another process gets its PID. */
  const REUSE = `
    sleep 1000 & pid=$!; echo $pid > "$D/pid"
    [ $ENDS = after ] || { kill -9 $pid; wait $pid; }
    "$@" & program=$!
    until [ -e "$D/go" ]; do sleep 0.05; done
    kill -9 $pid; wait $pid; reused=
    until [ "$reused" = $pid ]; do
      [ -z "$reused" ] || kill -9 $reused
      echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid; sleep 1000 & reused=$!
    done
    echo reused >&2; wait $program`;
  const namespace = ['unshare', '-Ur', '--pid', '--fork', '--mount-proc', '--kill-child'];
  const [unshare = '', ...flags] = namespace;
  const canReuse =
    spawnSync(unshare, [...flags, 'sh', '-c', 'echo 100 > /proc/sys/kernel/ns_last_pid']).status === 0;

  test.each([
    ['if its PID file is still the same', 'after'],
    ['if its PID file was left behind', 'before'],
  ])('%s', async (_, ends) => {
    if (!canReuse) return;
    const directory = temporaryDirectory();
    const mounted = volume();
    const script = `D=${directory}; ENDS=${ends}; ${REUSE}`;
    const target = ['--signal', 'CONT', '--pid-file', join(directory, 'pid')];
    const program = startCli(['watch', mounted.directory, '--json', ...target], {
      prefix: [...namespace, '/bin/sh', '-c', script, 'sh'],
    });
    await event(program, 'ready');
    mounted.publish({ n: '1' });
    if (ends === 'after') await succeededWith(program, mounted.revision);
    else await event(program, 'failed', ({ message }) => String(message).includes('does not exist'));
    writeFileSync(join(directory, 'go'), '');
    await program.until(/reused/);
    mounted.publish({ n: '2' });
    const verdict = await program.when(
      () =>
        linesOf(program).find(
          ({ event: name, message, revisions }) =>
            (name === 'failed' && !String(message).includes('does not exist')) ||
            (name === 'succeeded' && (revisions as string[]).includes(mounted.revision ?? '')),
        ),
      'the second update',
    );
    expect(verdict['message']).toContain('now belongs to another one');
  });
});
