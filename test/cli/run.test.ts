/** `run` as the parent of a real command, and as PID 1 of a namespace. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { CommandLines, startCli as start, type Program, type ProgramOptions } from '../support/program.js';
import { skip } from '../support/namespace.js';
import { isRunning } from '../support/running.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const commands = new CommandLines();

function volume(): KubeletVolume {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ n: '0' });
  return mounted;
}

/** Starts the program; what it leaves running when it is killed, as nothing else ends it, is killed after the test. */
function startCli(args: readonly string[], options?: ProgramOptions): Program {
  const program = start(args, options);
  onTestFinished(async () => {
    program.child.kill('SIGKILL');
    await program.exit;
    if (options?.prefix) return; // The PIDs are those of a namespace, which ends with the program.
    for (const [, pid] of program.stdout.matchAll(/^up (\d+)/gm)) {
      if (isRunning(Number(pid))) process.kill(-Number(pid), 'SIGKILL');
    }
  });
  return program;
}

/** Prints its PID, and each signal it gets; ends with 7 on TERM. */
const APPLICATION = `
for s in HUP USR1 USR2 QUIT INT WINCH; do trap "echo got $s" $s; done
trap 'echo got TERM; exit 7' TERM
echo "up $$"
while :; do sleep 0.05; done`;

const application = ['--', '/bin/sh', '-c', APPLICATION];

test('the command starts when all paths exist, gets a signal on each change, and its exit code is that of the program', async () => {
  const mounted = volume();
  const later = join(temporaryDirectory(), 'later');
  const program = startCli(['run', mounted.directory, later, ...application]);
  await program.until(/waiting for .*later/);
  expect(program.stdout).toBe('');
  writeFileSync(later, '');
  await program.until(/^up \d+$/m);
  mounted.publish({ n: '1' });
  await program.until(/got HUP/);
  expect(await program.terminated()).toBe(7);
});

test('it prints when the command starts and how it ends, without its arguments, and what a change led to', async () => {
  const mounted = volume();
  const program = startCli(['run', mounted.directory, '--on-change', 'restart', ...application]);
  const [, first] = await program.until(/INFO +\/bin\/sh: started with PID (\d+)\n/);
  await program.until(new RegExp(`^up ${first}$`, 'm'));
  mounted.publish({ n: '1' });
  await program.until(new RegExp(`/bin/sh: PID ${first} exited with code 7\n`));
  await program.until(/restart: done in [^]*up[^]*up/);
  program.child.kill('SIGTERM');
  const { stderr } = await program.finished();
  expect(stderr.match(/exited with code 7/g)).toHaveLength(2);
  expect(stderr).not.toContain('trap');
});

test('HUP, USR1, USR2, QUIT, INT and WINCH are handed on to the command', async () => {
  const program = startCli(['run', volume().directory, ...application]);
  await program.until(/^up \d+$/m);
  for (const name of ['HUP', 'USR1', 'USR2', 'QUIT', 'INT', 'WINCH']) {
    program.child.kill(`SIG${name}` as NodeJS.Signals);
    await program.until(new RegExp(`got ${name}`));
  }
});

test('a command killed by signal n ends the program with 128 + n', async () => {
  const { code } = await commands.run(['run', volume().directory, '--', '/bin/sh', '-c', 'kill -KILL $$']);
  expect(code).toBe(128 + 9);
});

test('a command that does not exist ends it with 127, one that is not executable with 126', async () => {
  const mounted = volume();
  const missing = await commands.run(['run', mounted.directory, '--', 'no-such-program']);
  expect([missing.code, missing.stderr]).toEqual([127, expect.stringContaining('no such program')]);
  const denied = await commands.run(['run', mounted.directory, '--', mounted.path('n')]);
  expect(denied.code).toBe(126);
});

test('restart replaces a command that ignores SIGTERM, with its children, after its check', async () => {
  const mounted = volume();
  const stubborn = `trap '' TERM; sleep 1000 & echo "up $$ $!"; while :; do sleep 0.05; done`;
  const program = startCli([
    ...['run', mounted.directory, '--on-change', 'restart', '--stop-timeout', '200ms'],
    ...['--check', `grep -q good ${mounted.path('n')}`, '--', '/bin/sh', '-c', stubborn],
  ]);
  const [, ...first] = await program.until(/^up (\d+) (\d+)$/m);
  mounted.publish({ n: 'bad' });
  await program.until(/the check failed, so nothing was done/);
  expect(first.map(Number).filter(isRunning)).toHaveLength(2);
  mounted.publish({ n: 'good' });
  await program.until(/^up .*\n(?:.*\n)*up (\d+) (\d+)$/m);
  expect(first.map(Number).filter(isRunning)).toEqual([]);
});

test('SIGTERM during a restart ends the program, and the command is not started again', async () => {
  const mounted = volume();
  const directory = temporaryDirectory();
  const stubborn = `trap 'echo stopping' TERM; echo "up $$"; while [ ! -e ${directory}/go ]; do sleep 0.05; done`;
  const program = startCli([
    ...['run', mounted.directory, '--on-change', 'restart', '--', '/bin/sh', '-c', stubborn],
  ]);
  const [, pid] = await program.until(/^up (\d+)$/m);
  mounted.publish({ n: '1' });
  await program.until(/stopping/);
  program.child.kill('SIGTERM');
  await program.until(/SIGTERM: stopping/);
  writeFileSync(join(directory, 'go'), '');
  expect(await program.exit).toBe(128 + 15);
  const { stdout } = await program.finished();
  expect([stdout.match(/up/g)?.length, isRunning(Number(pid))]).toEqual([1, false]);
});

test('a restart that takes longer than --timeout is not repeated', async () => {
  const mounted = volume();
  const slow = `trap 'sleep 1; exit' TERM; echo "up $$"; while :; do sleep 0.05; done`;
  const program = startCli([
    ...['run', mounted.directory, '--on-change', 'restart', '--timeout', '100ms'],
    ...['--', '/bin/sh', '-c', slow],
  ]);
  await program.until(/^up/m);
  mounted.publish({ n: '1' });
  await program.until(/restart: done in/);
  await program.until(/up[^]*up/);
  expect(program.stderr).not.toContain('failed');
});

test('processes left in the group of the command are stopped with it', async () => {
  const program = startCli(['run', volume().directory, '--', '/bin/sh', '-c', 'sleep 1000 & echo "left $!"']);
  const [, pid] = await program.until(/left (\d+)/);
  expect([await program.exit, isRunning(Number(pid))]).toEqual([0, false]);
});

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
