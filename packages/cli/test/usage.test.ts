/** A wrong command line ends with exit code 2 and a line that says what is wrong. */
import { writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';

import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { runMain } from './support/command-line.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

describe('a wrong command line ends with 2 and says what is wrong', () => {
  const cases: readonly (readonly [command: string, says: RegExp])[] = [
    ['watch --no-such-flag /etc', /unknown option '--no-such-flag'/],
    [
      'watch /etc nginx -s reload',
      /unknown option '-s'\n\(a command to run, with its options, follows after --\)/,
    ],
    ['wach /etc', /unknown command 'wach'[^]*Did you mean watch/],
    ['watch /etc --poll 5', /--poll[^]*must be a duration such as 500ms/],
    ['watch /etc --timeout -1s -- true', /--timeout/],
    ['watch /etc --signal NOPE --process p', /must be a signal such as HUP/],
    ['watch /etc --signal HUP', /needs either --pid-file or --process/],
    ['watch /etc --signal HUP --pid-file /p --process p', /needs either --pid-file or --process/],
    ['watch /etc --pid-file /p', /--pid-file needs --signal/],
    ['watch /etc --webhook ftp://host/', /--webhook must be an http\(s\) URL/],
    ['watch /etc/*.conf', /"\*"[^]*watch the directory/],
    ['wait /etc/*.conf', /"\*"[^]*wait for the directory/],
    ['watch /etc --webhook-method PUT --exec x', /--webhook-method needs --webhook/],
    ['watch /etc --check false', /--check needs an action/],
    ['watch /etc --exit-on-error', /--exit-on-error needs an action/],
    ['watch /etc --listen 80:nope', /must be an address/],
    ['watch /etc --', /no command is given after --/],
    ['watch /etc -- ', /no command is given after --/],
    ['run /etc -- ', /no command is given after --/],
    ['watch /etc --webhook http://h/ --webhook-method PU/T', /--webhook-method[^]*must be an HTTP method/],
    ['doctor /etc -- true', /doctor does not take a command/],
    ['watch', /no path is given/],
    ['watch --check /etc/app -- true', /no path is given: what follows a flag such as --check is its value/],
    ['watch /etc --exec --once', /value is missing/],
    ['watch /etc --exec', /argument missing/],
    ['watch /etc --config rules.yaml', /with --config, paths and commands belong in the rules/],
    ['watch --config rules.yaml --exec x', /'--config <file>' cannot be used with option '--exec <sh>'/],
    ['watch --config --json', /value is missing/],
    ['watch /etc --poll 0s', /must be at least 1ms/],
    ['watch /etc --timeout 0s -- true', /must be at least 1ms/],
    ['watch /etc --check false --check true -- true', /option '--check <sh>' is given twice/],
    ['watch ', /a path is empty/],
    ['watch /etc /etc/', /\/etc is given twice/],
    ['watch /etc --exec ', /--exec[^]*must not be empty/],
    ['run /etc', /no command is given; put it after --/],
    ['run -- true', /no path is given/],
    ['run /etc --on-change reload -- true', /--on-change <signal\|restart>[^]*must be restart, or a signal/],
    ['wait', /no path is given: what follows a flag such as --key is its value/],
    ['doctor', /give the paths to examine, or --manifest/],
    ['doctor /etc --manifest /dev/null', /not both/],
    ['token', /required option '--out <file>'/],
    ['token --out /t --service-account only-a-name', /must be <namespace>\/<name>/],
    ['token --out /t --expiration 5m', /must be at least 10m/],
    ['token --out --once', /value is missing/],
    ['token extra --out /t', /too many arguments/],
    ['sync-pods', /give either --namespace or --all-namespaces/],
    ['sync-pods --all-namespaces --namespace shop', /give either/],
    ['sync-pods --namespace shop --burst 0', /--burst[^]*must be a positive number/],
    ['sync-pods --namespace shop --kubeconfig /nowhere --splay 2m', /--splay must be at most --max-delay/],
    ['kubeconfig --out /t --ca-file /ca', /required option '--server <url>'/],
    ['kubeconfig --out /t --ca-file /ca --server nonsense', /--server[^]*must be an http\(s\) URL/],
  ];
  test.each(cases)('%s', async (command, says) => {
    const { code, stdout, stderr } = await runMain(command.split(' '));
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(says)]);
    expect(stderr).toMatch(/^error: .*\n[^]*\(use --help for usage and examples\)\n$/);
    expect(stderr).not.toMatch(/^ +at /m);
    // Names of the library mean nothing here.
    expect(stderr).not.toMatch(/option "|[a-z]Ms\b|\b[a-z]+[A-Z]\w*[:(]|\b[A-Z][a-z]+[A-Z]\w*:/);
  });
});

test('--help teaches each command by examples, --version is that of the package', async () => {
  for (const command of ['watch', 'run', 'wait', 'doctor', 'token', 'kubeconfig', 'sync-pods']) {
    const { code, stdout } = await runMain([command, '--help']);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/Examples?:\n {2}\S/)]);
    const takesCommand = ['watch', 'run', 'wait'].includes(command);
    expect(/^Usage: .*-- <command/.test(stdout)).toBe(takesCommand);
  }
  const version = await runMain(['--version']);
  expect([version.code, version.stdout]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+/)]);
});

test('an address in use is reported as such', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const { code, stderr } = await runMain([...['watch', '/etc/hostname', '--listen', `127.0.0.1:${port}`]]);
  expect([code, stderr]).toEqual([1, expect.stringContaining(`cannot listen on 127.0.0.1:${port}`)]);
});

test.each([
  ['rules: [{ paths: [/tmp], exec: [{}] }]', 'rules.0.exec.0: It must be a string.'],
  ['rules: [{ paths: [/tmp] }, { paths: /tmp }]', 'rules.1.paths: It must be a list, as in [/etc/app].'],
  [
    'rules: [{ paths: [/tmp], command: nginx -s reload }]',
    'rules.0.command: It must be a list, as in [nginx, -s, reload].',
  ],
  [
    'rules: [{ paths: [/tmp], exce: echo two }]',
    'rules.0.exce: unknown key; the keys are paths, command, exec, signal, pid-file, ',
  ],
  [
    'rules: [{ paths: [/tmp], exce: false }]',
    'rules.0.exce: unknown key; the keys are paths, command, exec, signal, pid-file, ',
  ],
  [
    'rules: [{ paths: [/tmp], webhok: http://h/, exec: [x] }]',
    'rules.0.webhok: unknown key; the keys are paths',
  ],
  [
    'rules: [{ paths: [/tmp], exec: process-tool --key signal, proces: nginx }]',
    'rules.0.proces: unknown key; the keys are paths',
  ],
  ['rules: [{ paths: [/tmp], exec: [x], check: [a, b] }]', 'rules.0.check: It must be a string.'],
  ['rules: [{ paths: [/tmp], recursive: "yes" }]', 'rules.0.recursive: It must be true or false.'],
  ['rules: [{ paths: [/tmp], once: true }]', 'rules.0.once: unknown key'],
  [
    'rules: [{ paths: [/tmp], poll: soon }]',
    'rules.0.poll: It must be a duration such as 500ms, 30s, 2m or 1h.',
  ],
  ['rules: [{ paths: [/tmp], pid-file: /p }]', 'rules.0: --pid-file needs --signal'],
  ['rules: [{ paths: [] }]', 'rules.0: "paths" is empty'],
  [
    'rules: [{ paths: ["one\\0two"] }]',
    'rules.0: ResilientWatcher: path must be a non-empty string without NUL bytes',
  ],
  ['rules: [{ paths: [/tmp], signal: HUP }]', 'rules.0: --signal needs either --pid-file or --process'],
  ['rules: {}', 'rules: it must be a list'],
  ['rule: []', 'rule: unknown key; the only key is "rules"'],
])('a file of rules that is wrong is named with the place and the reason: %s', async (text, message) => {
  const file = join(temporaryDirectory(), 'rules.yaml');
  writeFileSync(file, text);
  const { code, stderr } = await runMain(['watch', '--config', file]);
  expect([code, stderr]).toEqual([1, expect.stringContaining(`\n  ${file}:1: ${message}`)]);
});

test('all that is wrong in a file of rules is reported: each element, and unknown keys beside it', async () => {
  const file = join(temporaryDirectory(), 'rules.yaml');
  writeFileSync(
    file,
    'rules: [{ paths: [/tmp], exec: [ok, [x]], exce: y, timeout: soon }, 7, { paths: [/tmp], signal: [HUP, NO] }]',
  );
  const { stderr } = await runMain(['watch', '--config', file]);
  const places = [...stderr.matchAll(/^ {2}.*?rules\.yaml:1: (.*?): /gm)].map(([, place]) => place);
  expect(places).toEqual([
    'rules.0.exec.1',
    'rules.0.exce',
    'rules.0.timeout',
    'rules.1',
    'rules.2.signal.1',
  ]);
});

test('what is wrong in a rule is named with its line', async () => {
  const file = join(temporaryDirectory(), 'rules.yaml');
  writeFileSync(
    file,
    'rules:\n  - paths: [/tmp]\n    timeout: soon\n  - paths:\n      - /tmp\n    exce: x\n',
  );
  const { stderr } = await runMain(['watch', '--config', file]);
  const places = [...stderr.matchAll(/yaml:(\d+): (.*?): /gm)].map(([, line, place]) => `${line} ${place}`);
  expect(places).toEqual(['3 rules.0.timeout', '6 rules.1.exce']);
});

test('a file of rules that is no YAML is named with line and column', async () => {
  const file = join(temporaryDirectory(), 'rules.yaml');
  writeFileSync(file, 'rules: [');
  const { code, stderr } = await runMain(['watch', '--config', file]);
  expect([code, stderr]).toEqual([1, expect.stringContaining(` ${file}:1:9: not valid YAML`)]);
});

test.each(['watch', 'run', 'wait', 'doctor'])(
  '%s says that a relative path has no directory any more',
  async (command) => {
    const cwd = vi.spyOn(process, 'cwd').mockImplementation(() => {
      throw Object.assign(new Error('ENOENT: no such file or directory, uv_cwd'), { code: 'ENOENT' });
    });
    onTestFinished(() => cwd.mockRestore());
    const { code, stderr } = await runMain([command, 'a/b', ...(command === 'run' ? ['--', 'true'] : [])]);
    expect(stderr).toContain(
      'cannot resolve the relative path a/b: the working directory was removed; use an absolute path',
    );
    expect(code).toBe(2);
  },
);
