/** `run` as the parent of a real command. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { runMain, startMain as start, type CommandLine } from './support/command-line.js';
import { isRunning } from '../../../test/support/running.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

function volume(): KubeletVolume {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ n: '0' });
  return mounted;
}

/** Starts the program, and after the test ends the commands that print `up` with their PID, whatever they ignore. */
function startMain(args: readonly string[]): CommandLine {
  const program = start(args);
  onTestFinished(() => {
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
  const program = startMain(['run', mounted.directory, later, ...application]);
  await program.until(/waiting for .*later/);
  expect(program.stdout).toBe('');
  writeFileSync(later, 'x');
  await program.until(/^up \d+$/m);
  mounted.publish({ n: '1' });
  await program.until(/got HUP/);
  expect(await program.terminated()).toBe(7);
});

test('it prints when the command starts and how it ends, without its arguments, and what a change led to', async () => {
  const mounted = volume();
  const program = startMain(['run', mounted.directory, '--on-change', 'restart', ...application]);
  const [, first] = await program.until(/INFO +\/bin\/sh: started with PID (\d+)\n/);
  await program.until(new RegExp(`^up ${first}$`, 'm'));
  mounted.publish({ n: '1' });
  await program.until(new RegExp(`/bin/sh: PID ${first} exited with code 7\n`));
  await program.until(/restart: done in [^]*up[^]*up/);
  program.signal('SIGTERM');
  const { stderr } = await program.finished();
  expect(stderr.match(/exited with code 7/g)).toHaveLength(2);
  expect(stderr).not.toContain('trap');
});

test('a change of one path waits for that of the other, so the command restarts once; one path waits for nobody', async () => {
  const [a, b] = [volume(), volume()];
  const reading = `echo "up $$ with $(cat '${a.path('n')}' '${b.path('n')}' | tr -d '\\n')"; ${APPLICATION}`;
  const program = startMain([
    ...['run', a.directory, b.directory, '--on-change', 'restart', '--settle', '1h'],
    ...['--', '/bin/sh', '-c', reading],
  ]);
  await program.until(/^up \d+ with 00$/m);
  a.publish({ n: '1' });
  await program.until(new RegExp(`${a.directory}: .*chang`));
  b.publish({ n: '1' });
  await program.until(/^up \d+ with 11$/m);
  expect(program.stdout.match(/ with /g)).toHaveLength(2);

  const one = startMain(['run', a.directory, '--on-change', 'USR1', '--settle', '1h', ...application]);
  await one.until(/^up \d+$/m);
  a.publish({ n: '2' });
  await one.until(/got USR1/);
});

test('with --json each event is a line of its own, whatever the command writes', async () => {
  const mounted = volume();
  const program = startMain(['run', mounted.directory, '--json', '--', '/bin/sh', '-c', 'printf "no end"']);
  const { stdout } = await program.finished();
  const lines = stdout.split('\n').filter((line) => line.includes('"event"'));
  expect(lines.map((line) => (JSON.parse(line) as { event: string }).event)).toContain('command-ended');
});

test('on Windows a signal is refused, since it would end the command', async () => {
  const { platform } = process;
  onTestFinished(() => void Object.defineProperty(process, 'platform', { value: platform }));
  Object.defineProperty(process, 'platform', { value: 'win32' });
  const { code, stderr } = await runMain(['run', volume().directory, ...application]);
  expect([code, stderr]).toEqual([2, expect.stringContaining('use --on-change restart')]);
});

test('HUP, USR1, USR2, QUIT, INT and WINCH are handed on to the command', async () => {
  const program = startMain(['run', volume().directory, ...application]);
  await program.until(/^up \d+$/m);
  for (const name of ['HUP', 'USR1', 'USR2', 'QUIT', 'INT', 'WINCH']) {
    program.signal(`SIG${name}` as NodeJS.Signals);
    await program.until(new RegExp(`got ${name}`));
  }
});

test('a command killed by signal n ends the program with 128 + n', async () => {
  const { code } = await runMain(['run', volume().directory, '--', '/bin/sh', '-c', 'kill -KILL $$']);
  expect(code).toBe(128 + 9);
});

test('a command that does not exist ends it with 127, one that is not executable with 126', async () => {
  const mounted = volume();
  const missing = await runMain(['run', mounted.directory, '--', 'no-such-program']);
  expect([missing.code, missing.stderr]).toEqual([127, expect.stringContaining('no such program')]);
  const denied = await runMain(['run', mounted.directory, '--', mounted.path('n')]);
  expect([denied.code, denied.stderr]).toEqual([126, expect.stringContaining('n: it is not executable')]);
});

test('a command that its signal ends is said not to handle it, and one that ends otherwise is not', async () => {
  const mounted = volume();
  const program = startMain(['run', mounted.directory, '--', '/bin/sh', '-c', 'echo up; exec sleep 1000']);
  await program.until(/^up$/m);
  mounted.publish({ n: '1' });
  const { code, stderr } = await program.finished();
  expect([code, stderr]).toEqual([
    128 + 1,
    expect.stringMatching(/WARN +\/bin\/sh: SIGHUP ends it, .* use --on-change restart/),
  ]);
  const script = `trap 'trap - HUP; echo reloaded' HUP; echo up; while :; do sleep 0.05; done`;
  const hungUp = startMain(['run', mounted.directory, '--', '/bin/sh', '-c', script]);
  await hungUp.until(/^up$/m);
  mounted.publish({ n: '2' });
  await hungUp.until(/^reloaded$/m);
  hungUp.signal('SIGHUP');
  expect((await hungUp.finished()).stderr).not.toContain('WARN');
});

test('restart replaces a command that ignores SIGTERM, with its children, after its check', async () => {
  const mounted = volume();
  const stubborn = `trap '' TERM; sleep 1000 & echo "up $$ $!"; while :; do sleep 0.05; done`;
  const program = startMain([
    ...['run', mounted.directory, '--on-change', 'restart', '--stop-timeout', '200ms'],
    ...['--check', `grep -q good ${mounted.path('n')}`, '--', '/bin/sh', '-c', stubborn],
  ]);
  const [, ...first] = await program.until(/^up (\d+) (\d+)$/m);
  mounted.publish({ n: 'bad' });
  await program.until(/update rejected: Action "grep" failed/);
  expect(first.map(Number).filter(isRunning)).toHaveLength(2);
  mounted.publish({ n: 'good' });
  await program.until(/^up .*\n(?:.*\n)*up (\d+) (\d+)$/m);
  expect(first.map(Number).filter(isRunning)).toEqual([]);
});

test('SIGTERM during a restart ends the program, and the command is not started again', async () => {
  const mounted = volume();
  const directory = temporaryDirectory();
  const stubborn = `trap 'echo stopping' TERM; echo "up $$"; while [ ! -e ${directory}/go ]; do sleep 0.05; done`;
  const program = startMain([
    ...['run', mounted.directory, '--on-change', 'restart', '--', '/bin/sh', '-c', stubborn],
  ]);
  const [, pid] = await program.until(/^up (\d+)$/m);
  mounted.publish({ n: '1' });
  await program.until(/stopping/);
  program.signal('SIGTERM');
  await program.until(/SIGTERM: stopping/);
  writeFileSync(join(directory, 'go'), '');
  expect(await program.exit).toBe(128 + 15);
  const { stdout } = await program.finished();
  expect([stdout.match(/up/g)?.length, isRunning(Number(pid))]).toEqual([1, false]);
});

test('a restart that takes longer than --timeout is not repeated', async () => {
  const mounted = volume();
  const slow = `trap 'sleep 0.3; exit' TERM; echo "up $$"; while :; do sleep 0.05; done`;
  const program = startMain([
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
  const program = startMain([
    'run',
    volume().directory,
    '--',
    '/bin/sh',
    '-c',
    'sleep 1000 & echo "left $!"',
  ]);
  const [, pid] = await program.until(/left (\d+)/);
  expect([await program.exit, isRunning(Number(pid))]).toEqual([0, false]);
});

describe('a change while the old command is stopping', () => {
  /** A command that ends once `go` exists, and a check that refuses the word `bad`. */
  async function stopping(
    ...flags: string[]
  ): Promise<{ program: CommandLine; file: string; go: () => void }> {
    const directory = temporaryDirectory();
    const file = join(directory, 'file');
    writeFileSync(file, 'good');
    const slow = `trap 'echo stopping' TERM; echo "up $$"; while [ ! -e ${directory}/go ]; do sleep 0.01; done`;
    const program = startMain([
      ...['run', file, '--on-change', 'restart', ...flags],
      ...[
        '--',
        '/bin/sh',
        '-c',
        `${slow}; [ -e ${directory}/went ] || { echo > ${directory}/went; exit; }; sleep 1000`,
      ],
    ]);
    await program.until(/^up/m);
    writeFileSync(file, 'good, and newer');
    await program.until(/stopping/);
    return { program, file, go: () => writeFileSync(join(directory, 'go'), '') };
  }

  const starts = ({ stdout }: CommandLine): number => stdout.match(/^up/gm)?.length ?? 0;

  test('is checked: the command is not started with what is invalid, and starts with the next that is valid', async () => {
    const { program, file, go } = await stopping('--check', 'grep -q good "$RW_PATH"');
    writeFileSync(file, 'bad');
    await program.until(/(?:: changed[^]*){2}/);
    go();
    await program.until(/update rejected[^]*not running until a change passes the check/);
    expect(starts(program)).toBe(1);
    writeFileSync(file, 'good again');
    await program.until(/^up[^]*^up/m);
  });

  test('is waited for if it has removed a path', async () => {
    const { program, file, go } = await stopping();
    rmSync(file);
    await program.until(/missing/);
    go();
    await program.until(/waiting for .*file/);
    expect(starts(program)).toBe(1);
    writeFileSync(file, 'back');
    await program.until(/^up[^]*^up/m);
  });
});

test('a command that runs is not stopped because a path is gone, and restarted when it is back', async () => {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, '0');
  const program = startMain(['run', file, '--on-change', 'restart', ...application]);
  const [, pid] = await program.until(/^up (\d+)$/m);
  rmSync(file);
  await program.until(/waiting for .*file/);
  expect(isRunning(Number(pid))).toBe(true);
  writeFileSync(file, '1');
  await program.until(/^up[^]*^up/m);
});
