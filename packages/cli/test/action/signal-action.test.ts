import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { signalAction, type SignalTarget } from '../../src/action.js';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

const update = { paths: [], cause: 'fs' };
const { signal } = new AbortController();

test.each([
  [
    'a named pipe without a writer',
    (path: string) => execFileSync('mkfifo', [path]),
    /does not contain a process ID/,
  ],
  ['missing', () => undefined, /the file does not exist/],
  ['a directory', (path: string) => mkdirSync(path), /does not contain/],
  ['a file of any size', (path: string) => writeFileSync(path, Buffer.alloc(10_000_000)), /does not contain/],
  ['a process group', (path: string) => writeFileSync(path, '-1'), /does not contain/],
  ['all processes', (path: string) => writeFileSync(path, '0'), /does not contain/],
])('a PID file that is %s is a failure with a reason', async (_, make, says) => {
  const pidFile = join(temporaryDirectory(), 'pid');
  make(pidFile);
  await expect(signalAction('SIGHUP', { pidFile }).run(update, { signal })).rejects.toThrow(says);
});

test.each([
  ['a signal that does not exist', 'SIGNOPE', { pidFile: '/run/pid' }, /signal must be the name of a signal/],
  ['a number', 1, { pidFile: '/run/pid' }, /signal must be the name of a signal/],
  ['no target', 'SIGHUP', undefined, /either "pidFile" or "processName"/],
  [
    'two targets',
    'SIGHUP',
    { pidFile: '/run/pid', processName: 'nginx' },
    /either "pidFile" or "processName"/,
  ],
  ['an empty PID file', 'SIGHUP', { pidFile: '' }, /"pidFile" must be a non-empty string/],
  // Kernel threads have an empty command line.
  ['an empty name', 'SIGHUP', { processName: '' }, /"processName" must be a non-empty string/],
  ['an unknown target', 'SIGHUP', { pidfile: '/run/pid' }, /unknown option "pidfile"/],
])('a signal action with %s is refused when it is created', (_, name, target, says) => {
  expect(() => signalAction(name as NodeJS.Signals, target as SignalTarget)).toThrow(says);
});

test.each([
  ['this process', process.pid],
  ['its parent', process.ppid],
])('a PID file that names %s is a failure: it was written in another container', async (_, pid) => {
  const pidFile = join(temporaryDirectory(), 'pid');
  writeFileSync(pidFile, `${pid}\n`);
  const run = signalAction('SIGCONT', { pidFile }).run(update, { signal });
  await expect(run).rejects.toThrow(/this program itself.*shareProcessNamespace/);
});

const onLinux = test.runIf(process.platform === 'linux');

onLinux.each<[string, string, string?]>([
  ['that the kernel starts, with a longer name than it keeps', '#!/bin/sh'],
  ['whose interpreter env(1) has found', '#!/usr/bin/env -S sh'],
  ['that its interpreter is given', '', '/bin/sh'],
])('a script %s is found by the name of its file', async (_, shebang, interpreter) => {
  const name = `reloadable-script-${process.pid}`;
  const script = join(temporaryDirectory(), name);
  const lines = [shebang, "trap 'echo signaled; exit' HUP", 'echo up', 'while :; do sleep 0.01; done', ''];
  writeFileSync(script, lines.join('\n'), { mode: 0o755 });
  const child = spawn(interpreter ?? script, interpreter === undefined ? [] : [script], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  await signalAction('SIGHUP', { processName: name }).run(update, { signal });
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  expect(said.toString()).toBe('signaled\n');
});

onLinux('a process that was started after its PID file was written is another one', async () => {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  const pidFile = join(temporaryDirectory(), 'pid');
  const write = (ageSeconds: number): void => {
    writeFileSync(pidFile, `${child.pid}`);
    const time = Date.now() / 1_000 - ageSeconds;
    utimesSync(pidFile, time, time);
  };
  write(3_600);
  const action = signalAction('SIGCONT', { pidFile });
  await expect(action.run(update, { signal })).rejects.toThrow('now belongs to another one');
  write(0);
  await action.run(update, { signal });
});

onLinux('a program whose argument has the name is not it', async () => {
  const name = `reloadable-file-${process.pid}`;
  const file = join(temporaryDirectory(), name);
  writeFileSync(file, 'x\n');
  const child = spawn('tail', [file, '-f'], { stdio: ['ignore', 'pipe', 'ignore'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const run = signalAction('SIGHUP', { processName: name }).run(update, { signal });
  await expect(run).rejects.toThrow('there is no such process');
});
