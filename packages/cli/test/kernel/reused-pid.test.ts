/** A PID that the kernel has given to another process. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { event, linesOf, revisionsIn, succeededWith } from '../../../../test/support/events.js';
import { startCli } from '../../../../test/support/program.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

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
    const mounted = new KubeletVolume(join(directory, 'volume'));
    mounted.publish({ n: '0' });
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
          (line) =>
            (line.event === 'failed' && !String(line['message']).includes('does not exist')) ||
            (line.event === 'succeeded' && revisionsIn(line).includes(mounted.revision)),
        ),
      'the second update',
    );
    expect(verdict['message']).toContain('now belongs to another one');
  });
});
