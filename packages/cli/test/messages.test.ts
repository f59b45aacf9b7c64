/** The lines that events are printed as, in a pipe and on a terminal. */
import { expect, test } from 'vitest';

import { runMain } from './support/command-line.js';
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

test.each([
  ['run', ['--', 'true']],
  ['wait', ['--', 'true']],
  ['watch', ['--initial', '--once', '--', 'true']],
])('%s warns as PID 1 that orphans are not reaped, if no init can take its place', async (command, args) => {
  const becomeInit = (): void => undefined;
  const { code, stderr } = await runMain([command, temporaryDirectory(), ...args], { becomeInit });
  expect([code, stderr]).toEqual([0, expect.stringContaining('orphans are not reaped')]);
});
