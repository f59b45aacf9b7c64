/** The program as PID 1 of a namespace. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { startCli, type Program } from '../../../../test/support/program.js';
import { skip } from '../../../../test/support/namespace.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

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

  /** Makes orphans that end at once, and goes on when nothing is left of them. */
  const ORPHANING = `
    for i in 1 2 3 4 5; do (sleep 0.01 & ) ; done
    while ps -eo comm= | grep -c sleep | grep -qv '^0$'; do :; done
    echo reaped`;

  /** Ends like the command that it has started. */
  const SERVING = `
    trap 'echo got TERM; exit 7' TERM
    read line; echo "stdin $line"; ${ORPHANING}
    while :; do sleep 0.05; done`;

  /** Sends a signal to PID 1 of the namespace, which is the only child of `unshare`. */
  function signalInit({ child: { pid } }: Program, signal: NodeJS.Signals): void {
    const [init] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
    process.kill(Number(init), signal);
  }

  test.for(['run', 'wait'])(
    '%s reaps orphans, forwards stdin and signals, and exits like the command',
    async (command, context) => {
      if (!canUnshare) skip(context, '`unshare -Ur --pid` is not possible here');
      if (newer === undefined) skip(context, 'it needs Node.js 22.15 or later, here or in TEST_NODE');
      const program = startCli([command, volume().directory, '--', '/bin/sh', '-c', SERVING], {
        prefix: namespace,
        node: newer,
        input: 'line\n',
      });
      await program.until(/stdin line\n(?:.*\n)*reaped/);
      expect(program.stderr).not.toMatch(/Warning|without an init/);
      signalInit(program, 'SIGTERM');
      await program.until(/got TERM/);
      expect(await program.exit).toBe(7);
    },
  );

  test('watch reaps what the commands that it runs leave behind, and ends on SIGTERM', async (context) => {
    if (!canUnshare) skip(context, '`unshare -Ur --pid` is not possible here');
    if (newer === undefined) skip(context, 'it needs Node.js 22.15 or later, here or in TEST_NODE');
    const flags = ['--initial', '--timeout', '20s', '--exit-on-error', '--exec', ORPHANING];
    const program = startCli(['watch', volume().directory, ...flags], { prefix: namespace, node: newer });
    await program.until(/^reaped$[^]*done in/m);
    expect(program.stderr).not.toMatch(/Warning|without an init/);
    signalInit(program, 'SIGTERM');
    expect(await program.exit).toBe(0);
  });

  /** A module that sends SIGTERM to its own process at a moment of its start. */
  const MOMENTS = {
    'has just handled signals': `process.once('newListener', () => process.nextTick(() => process.kill(process.pid, 'SIGTERM')));`,
    'is loading': `
      const stream = process.stdout;
      Object.defineProperty(process, 'stdout', {
        configurable: true,
        get() {
          Object.defineProperty(process, 'stdout', { value: stream });
          process.kill(process.pid, 'SIGTERM');
          return stream;
        },
      });`,
  };
  const nodes = [...new Set([process.execPath, newer ?? process.execPath])];
  const starts = nodes.flatMap((node) =>
    Object.entries(MOMENTS).flatMap(([moment, code]) =>
      ['run', 'watch', 'wait'].map((command) => ({ node, moment, code, command })),
    ),
  );

  test.for(starts)(
    '$command ends on a SIGTERM that arrives while it $moment, with $node',
    async ({ node, code, command }, context) => {
      if (!canUnshare) skip(context, '`unshare -Ur --pid` is not possible here');
      const hook = join(temporaryDirectory(), 'hook.mjs');
      writeFileSync(hook, `if (process.pid === 1) { ${code} }`);
      const then = command === 'watch' ? [] : ['--', '/bin/sh', '-c', 'while :; do sleep 0.05; done'];
      const program = startCli([command, volume().directory, ...then], {
        prefix: namespace,
        node,
        env: { NODE_OPTIONS: `--import ${hook}` },
      });
      expect([0, 128 + 15]).toContain(await program.exit);
    },
  );

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
