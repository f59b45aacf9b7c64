/** The lines that events are printed as, in a pipe and on a terminal. */
import { expect, onTestFinished, test, vi } from 'vitest';

import { runMain, type CommandLineOptions } from './support/command-line.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;

test('an event is a line on stderr with its UTC time and level, or with --json a document on stdout', async () => {
  const directory = temporaryDirectory();
  const text = await runMain(['wait', directory]);
  const line = new RegExp(`^(${TIME} INFO  \\S.*\n)+$`);
  expect([text.stdout, text.stderr]).toEqual(['', expect.stringMatching(line)]);
  const json = await runMain(['wait', directory, '--json']);
  const [first = ''] = json.stdout.split('\n');
  expect([json.stderr, JSON.parse(first)]).toMatchObject([
    '',
    { time: expect.stringMatching(`^${TIME}$`) as string, level: 'info', event: 'change' },
  ]);
});

test('the level is in color on a terminal, and not with NO_COLOR', async () => {
  vi.stubEnv('FORCE_COLOR', undefined);
  vi.stubEnv('NO_COLOR', undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  const printed = async (options: CommandLineOptions): Promise<string> =>
    (await runMain(['wait', temporaryDirectory()], options)).stderr;
  expect(await printed({ isTTY: true })).toMatch(new RegExp(`${TIME} \u001b\\[36mINFO \u001b\\[39m \\S`));
  const plain = new RegExp(`${TIME} INFO  \\S`);
  expect(await printed({ isTTY: true, env: { NO_COLOR: '1' } })).toMatch(plain);
  expect(await printed({})).toMatch(plain);
});

test('a command writes to stderr itself, so its output is neither buffered nor among the events', async () => {
  const hook = 'readlink /proc/$$/fd/1; readlink /proc/$$/fd/2';
  const args = ['--json', '--initial', '--once', '--exec', hook];
  const { stdout, stderr } = await runMain(['watch', temporaryDirectory(), ...args]);
  expect(stderr).toMatch(/^(\/\S+\/stderr\n){2}$/);
  for (const line of stdout.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('event');
});

test.each([
  ['run', ['--', 'true']],
  ['wait', ['--', 'true']],
  ['watch', ['--initial', '--once', '--', 'true']],
])('%s warns as PID 1 that orphans are not reaped, if no init can take its place', async (command, args) => {
  const becomeInit = (): Promise<void> => Promise.resolve();
  const { code, stderr } = await runMain([command, temporaryDirectory(), ...args], { becomeInit });
  expect([code, stderr]).toEqual([0, expect.stringContaining('orphans are not reaped')]);
});
