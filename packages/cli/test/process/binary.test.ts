/** The program as a process: its exit code, a terminal and a disk that is full. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

import { expect, test } from 'vitest';

import { runCli } from '../../../../test/support/program.js';
import { skip } from '../../../../test/support/namespace.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;

test('a wrong command line ends the program with 2, as does a token for its pipe', async () => {
  const { code, stdout, stderr } = await runCli(['wach', '/etc']);
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining("unknown command 'wach'")]);
  const account = ['--service-account', 'ci/builder', '--kubeconfig', '/nowhere'];
  const piped = await runCli(['token', '--out', '/dev/stdout', ...account]);
  expect([piped.code, piped.stderr]).toEqual([
    2,
    expect.stringContaining('--out /dev/stdout is a pipe, a socket or a device'),
  ]);
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

test('the level is in color on a terminal, wherever stdout leads, and not with NO_COLOR', async (context) => {
  if (spawnSync('script', ['--version']).status !== 0) skip(context, '`script` of util-linux is not there');
  const onTerminal = async (before: string, after: string): Promise<string> => {
    // Nothing else of the environment: Node.js has no color with CI set, for one.
    const shell = `exec env -i PATH="$PATH" TERM=xterm ${before} script -qec "$* ${after}" /dev/null`;
    const args = ['wait', temporaryDirectory()];
    return (await runCli(args, { prefix: ['sh', '-c', shell, 'sh'] })).stdout;
  };
  const colored = `${TIME} \u001b\\[36mINFO \u001b\\[39m \\S`;
  expect(await onTerminal('', '')).toMatch(new RegExp(colored));
  expect(await onTerminal('', '> /dev/null')).toMatch(new RegExp(colored));
  expect(await onTerminal('NO_COLOR=1', '')).toMatch(new RegExp(`${TIME} INFO  \\S`));
});
