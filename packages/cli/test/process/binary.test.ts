/** The program as a process: its exit code, and a disk that is full. */
import { existsSync } from 'node:fs';

import { expect, test } from 'vitest';

import { runCli } from '../../../../test/support/program.js';

test('a wrong command line ends the program with 2', async () => {
  const { code, stdout, stderr } = await runCli(['wach', '/etc']);
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining("unknown command 'wach'")]);
});

test('a full disk behind stdout is a failure of doctor, --help and --version, and does not keep watch from acting', async () => {
  if (!existsSync('/dev/full')) return;
  const full = { prefix: ['/bin/sh', '-c', 'exec "$@" > /dev/full', 'sh'] };
  const doctor = await runCli(['doctor', '/etc'], full);
  expect([doctor.code, doctor.stderr]).toEqual([1, expect.stringContaining('ENOSPC')]);
  for (const flag of ['--version', '--help']) {
    const shown = await runCli([flag], full);
    expect([shown.code, shown.stderr]).toEqual([1, expect.stringContaining('ENOSPC')]);
  }
  const help = await runCli(['watch', '--help'], full);
  expect(help.code).toBe(1);
  const acting = await runCli(
    ['watch', '/etc/hostname', '--json', '--initial', '--once', '--exec', 'true'],
    full,
  );
  expect([acting.code, acting.stderr]).toEqual([0, expect.stringContaining('events are not shown: ENOSPC')]);
});
