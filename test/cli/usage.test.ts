/** A wrong command line ends with exit code 2 and a line that says what is wrong. */
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';

import { describe, expect, onTestFinished, test } from 'vitest';

import { CommandLines, runCli } from '../support/program.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const commands = new CommandLines();

describe('a wrong command line ends with 2 and says what is wrong', () => {
  const cases: readonly (readonly [command: string, says: RegExp])[] = [
    ['watch --no-such-flag /etc', /unknown option '--no-such-flag'/],
    ['wach /etc', /unknown command 'wach'[^]*Did you mean watch/],
    ['watch /etc --poll 5', /--poll[^]*must be a duration such as 500ms/],
    ['watch /etc --timeout -1s -- true', /--timeout/],
    ['watch /etc --signal NOPE --pid 1', /must be a signal such as HUP/],
    ['watch /etc --signal HUP', /needs exactly one of --pid, --pid-file and --process/],
    ['watch /etc --pid 1', /--pid needs --signal/],
    ['watch /etc --signal HUP --pid 4194305', /--pid 4194305: there is no such process/],
    ['watch /etc --signal HUP --pid 0', /must be a process ID/],
    ['watch /etc --webhook ftp://host/', /must be an http or https URL/],
    ['watch /etc --webhook http://h/ --webhook-status 2xx', /such as 200-299/],
    ['watch /etc --webhook http://h/ --webhook-timeout 0', /--webhook-timeout/],
    ['watch /etc --webhook http://h/ --webhook-header nope', /must be a header/],
    ['watch /etc --webhook-token-file /t', /--webhook-token-file needs --webhook/],
    ['watch /etc --webhook-method PUT --exec x', /--webhook-method needs --webhook/],
    ['watch /etc --check false', /--check needs an action/],
    ['watch /etc --exit-on-error', /--exit-on-error needs an action/],
    ['watch /etc --listen 80:nope', /must be an address/],
    ['watch /etc --on-busy drop -- true', /Allowed choices are queue, restart/],
    ['watch /etc --', /no command after --/],
    ['doctor /etc -- true', /doctor does not take a command/],
    ['watch', /there is no path/],
    ['watch --check /etc/app -- true', /there is no path. The value of a flag is not one/],
    ['watch /etc --exec --once', /value is missing/],
    ['watch /etc --exec', /argument missing/],
    ['watch /etc --config rules.yaml', /with --config, paths and commands belong in the rules/],
    ['watch --config rules.yaml --exec x', /with --config, --exec belongs in the rules/],
    ['watch --config --json', /value is missing/],
    ['watch /etc --poll 0s', /must be at least 1ms/],
    ['watch /etc --timeout 0s -- true', /must be at least 1ms/],
    ['watch ', /a path is empty/],
    ['watch /etc /etc/', /\/etc is given twice/],
    ['watch --config /etc', /--config \/etc is a directory; give the file in it/],
    ['watch /etc --exec ', /--exec[^]*It is empty/],
    ['run /etc', /there is no command; it follows after --/],
    ['run -- true', /there is no path/],
    ['run /etc --for /tmp=HUP -- true', /a path that is not watched/],
    ['run /etc --for HUP -- true', /must be a path and what to do/],
    ['run /etc /tmp --group --for /tmp=HUP -- true', /--for cannot be used with --group/],
    ['wait', /there is no path/],
    ['wait /etc/a /etc/b --group --key k', /--key cannot be used with --group/],
    ['wait /etc --sha256 abc', /SHA-256 digest: 64 hexadecimal digits/],
    [`wait /etc --sha256 ${'a'.repeat(64)} --changed-since ${'a'.repeat(64)}`, /cannot be used with option/],
    ['doctor', /give the paths to examine, or --manifest/],
    ['doctor --manifest /dev/null --live 1s', /--live needs paths/],
    ['token', /required option '--out <file>'/],
    ['token --out /t --service-account only-a-name', /must be <namespace>\/<name>/],
    ['token --out /t --expiration 5m', /must be at least 10m/],
    ['token --out --once', /value is missing/],
    ['token extra --out /t', /too many arguments/],
    ['kubeconfig --out /t --ca-file /ca', /required option '--server <url>'/],
    ['kubeconfig --out /t --ca-file /ca --server nonsense', /must be an http or https URL/],
  ];
  test.each(cases)('%s', async (command, says) => {
    const { code, stdout, stderr } = await commands.run(command.split(' '));
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(says)]);
    expect(stderr).not.toMatch(/^ +at /m);
  });
});

test('a wrong command line ends the program with 2', async () => {
  const { code, stdout, stderr } = await runCli(['wach', '/etc']);
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining("unknown command 'wach'")]);
});

test('--help teaches each command by examples, --version is that of the package', async () => {
  for (const command of ['watch', 'run', 'wait', 'doctor', 'token', 'kubeconfig']) {
    const { code, stdout } = await commands.run([command, '--help']);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/Examples?:\n {2}\S/)]);
  }
  const version = await commands.run(['--version']);
  expect([version.code, version.stdout]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+/)]);
});

test('a full disk behind stdout is a failure of doctor, and does not keep watch from acting', async () => {
  if (!existsSync('/dev/full')) return;
  const full = { prefix: ['/bin/sh', '-c', 'exec "$@" > /dev/full', 'sh'] };
  const doctor = await runCli(['doctor', '/etc'], full);
  expect([doctor.code, doctor.stderr]).toEqual([1, expect.stringContaining('ENOSPC')]);
  const acting = await runCli(
    ['watch', '/etc/hostname', '--json', '--initial', '--once', '--exec', 'true'],
    full,
  );
  expect([acting.code, acting.stderr]).toEqual([0, expect.stringContaining('events are not shown: ENOSPC')]);
});

test('relative paths in a directory that was removed are refused', async () => {
  const gone = ['/bin/sh', '-c', 'cd "$0" && rmdir "$0" && exec "$@"', temporaryDirectory()];
  const { code, stderr } = await runCli(['watch', 'file'], { prefix: gone });
  expect([code, stderr]).toEqual([2, expect.stringContaining('the working directory was removed')]);
});

test('an address in use is reported as such', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const { code, stderr } = await commands.run([
    ...['watch', '/etc/hostname', '--listen', `127.0.0.1:${port}`],
  ]);
  expect([code, stderr]).toEqual([1, expect.stringContaining(`cannot listen on 127.0.0.1:${port}`)]);
});

test.each([
  ['rules: [{ paths: [/tmp], exec: [true] }]', 'rules.0: "exec" must be text, or a list of texts'],
  ['rules: [{ paths: [/tmp] }, { paths: /tmp }]', 'rules.1: "paths" must be a list'],
  ['rules: [{ paths: [/tmp], sgnal: HUP }]', "rules.0: unknown option '--sgnal="],
  ['rules: {}', 'rules: it must be a list'],
  ['rule: []', 'rule: an unknown key; the only one is "rules"'],
])('a file of rules that is wrong is named with the place and the reason: %s', async (text, message) => {
  const file = join(temporaryDirectory(), 'rules.yaml');
  writeFileSync(file, text);
  const { code, stderr } = await commands.run(['watch', '--config', file]);
  expect([code, stderr]).toEqual([1, expect.stringContaining(`\n  ${file}: ${message}`)]);
});
