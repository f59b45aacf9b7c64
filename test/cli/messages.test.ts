/** The lines that events are printed as, in a pipe and on a terminal. */
import { spawnSync } from 'node:child_process';

import { expect, test } from 'vitest';

import { CommandLines, runCli } from '../support/program.js';
import { skip } from '../support/namespace.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const commands = new CommandLines();

const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;

test('an event is a line on stderr with its UTC time and level, or with --json a document on stdout', async () => {
  const directory = temporaryDirectory();
  const text = await commands.run(['wait', directory]);
  const line = new RegExp(`^(${TIME} INFO  \\S.*\n)+$`);
  expect([text.stdout, text.stderr]).toEqual(['', expect.stringMatching(line)]);
  const json = await commands.run(['wait', directory, '--json']);
  const [first = ''] = json.stdout.split('\n');
  expect([json.stderr, JSON.parse(first)]).toMatchObject([
    '',
    { time: expect.stringMatching(`^${TIME}$`) as string, level: 'info', event: 'change' },
  ]);
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
