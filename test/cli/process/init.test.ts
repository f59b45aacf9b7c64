/** The program as PID 1 of a namespace. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { startCli } from '../../support/program.js';
import { skip } from '../../support/namespace.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

function volume(): KubeletVolume {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ n: '0' });
  return mounted;
}

describe('as PID 1 of a PID namespace', () => {
  const namespace = ['unshare', '-Ur', '--pid', '--fork', '--mount-proc', '--kill-child'];
  const canUnshare = spawnSync(namespace[0] ?? '', [...namespace.slice(1), 'true']).status === 0;

  /** Node.js of at least 22.15, which can replace itself by an init. */
  const newer = [process.execPath, process.env['TEST_NODE'] ?? ''].find(
    (node) =>
      node !== '' &&
      spawnSync(node, ['-p', '"execve" in process'], { encoding: 'utf8' }).stdout.includes('true'),
  );

  /** Makes orphans that end at once, and shows what is left of them. */
  const ORPHANING = `
    for i in 1 2 3 4 5; do (sleep 0.01 & ) ; done
    trap 'echo got TERM; exit 7' TERM
    read line; echo "stdin $line"
    while ps -eo comm= | grep -c sleep | grep -qv '^0$'; do :; done
    echo reaped; while :; do sleep 0.05; done`;

  test('it reaps orphans, forwards stdin and signals, and exits like the command', async (context) => {
    if (!canUnshare) skip(context, '`unshare -Ur --pid` is not possible here');
    if (newer === undefined) skip(context, 'it needs Node.js 22.15 or later, here or in TEST_NODE');
    const program = startCli(['run', volume().directory, '--', '/bin/sh', '-c', ORPHANING], {
      prefix: namespace,
      node: newer,
      input: 'line\n',
    });
    await program.until(/stdin line\n(?:.*\n)*reaped/);
    expect(program.stderr).not.toMatch(/Warning|without an init/);
    // `unshare` is its parent; PID 1 of the namespace is the only child of that.
    const [init] = readFileSync(
      `/proc/${program.child.pid}/task/${program.child.pid}/children`,
      'utf8',
    ).split(' ');
    process.kill(Number(init), 'SIGTERM');
    await program.until(/got TERM/);
    expect(await program.exit).toBe(7);
  });

  test('with an older Node.js it says that orphans are not reaped, and works', async (context) => {
    if (!canUnshare) skip(context, '`unshare -Ur --pid` is not possible here');
    if ('execve' in process) skip(context, 'this Node.js can replace itself by an init');
    const program = startCli(['run', volume().directory, '--', '/bin/sh', '-c', 'echo up'], {
      prefix: namespace,
    });
    await program.until(/orphans are not reaped/);
    expect(await program.exit).toBe(0);
  });
});
