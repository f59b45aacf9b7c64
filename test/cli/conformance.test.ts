/** `conformance` tells a right watcher from each kind of wrong one, and leaves nothing behind. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { root, textOf } from '../docs/markdown.js';
import { CommandLines, startCli, type Outcome } from '../support/program.js';
import { some } from '../support/rounds.js';
import { isRunning } from '../support/running.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

interface Report {
  readonly event: string;
  readonly name: string;
  readonly verdict: string;
  readonly says: string;
}

interface Listed {
  readonly name: string;
  readonly group: string;
  readonly says: string;
}

const documents = (output: string): Report[] =>
  output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Report);

/** A Node.js program that has the function `digest`, with the digest of the file at the moment, or nothing. */
const program = (code: string): string[] => [
  process.execPath,
  '-e',
  `const { createHash } = require('node:crypto');
  const { readFileSync } = require('node:fs');
  const sha256 = (content) => createHash('sha256').update(content).digest('hex');
  const content = () => { try { return readFileSync(process.argv[1]); } catch {} };
  const digest = () => { const read = content(); return read && sha256(read); };
  let shown;
  const show = (value = digest()) => { if (value && value !== shown) console.log((shown = value)); };
  ${code}`,
  '{path}',
];

/** Believes everything that it reads, at once. */
const hasty = 'setInterval(show, 1);';

const commands = new CommandLines();

function conform(only: readonly string[], command: readonly string[], ...flags: string[]): Promise<Outcome> {
  const names = only.flatMap((name) => ['--only', name]);
  return commands.run(['conformance', '--json', ...names, ...flags, '--', ...command]);
}

const reference = [process.execPath, join(root, 'test/conformance/node/poll.mjs'), '{path}'];

test('a program that reads every 50 ms passes in each group, and the exit code is 0', async () => {
  const names = [
    ...some(['gap-20ms', 'a-b-a', 'volume-missing', 'volume-recreated', 'sub-path'], 5),
    ...some(['file-in-parts', 'file-in-place'], 2),
    ...['secret-swap', 'token-authority', 'certificate-rotation'],
    ...['stopped', 'no-instance', 'user-0700'],
  ];
  const { code, stdout } = await conform(names, reference);
  const reports = documents(stdout).filter(({ event }) => event === 'sequence');
  const wrong = reports.filter(({ verdict }) => verdict !== 'right' && verdict !== 'skipped');
  expect([wrong, reports.map(({ name }) => name).sort(), code]).toEqual([[], names.sort(), 0]);
  expect(documents(stdout).at(-1)).toMatchObject({ event: 'total', sequences: names.length });
});

describe('a wrong program is told by what is wrong', () => {
  const cases: readonly (readonly [verdict: string, sequence: string, code: string, says: RegExp])[] = [
    ['missed', 'swap', 'show(); setInterval(() => {}, 1e6);', /update 1 was never shown/],
    ['silent', 'swap', 'setInterval(() => {}, 1e6);', /no digest/],
    [
      'crashed',
      'swap',
      'show(); setTimeout(() => { throw new Error("gone wrong"); }, 100);',
      /code 1.*gone wrong/,
    ],
    [
      'crashed',
      'swap',
      // Node.js prints where the event was emitted after the error.
      `show(); setTimeout(() => new (require('node:events'))().emit('error', new Error('no watch left')), 100);`,
      /code 1: Error: no watch left/,
    ],
    ['crashed', 'swap', 'process.exit(0);', /code 0/],
    ['torn', 'file-in-parts', hasty, /half/],
    [
      'false',
      'swap',
      'setInterval(() => { if (digest()) { show(); show(sha256("made up")); } }, 20);',
      /never existed/,
    ],
    [
      'false',
      'swap',
      'const first = digest(); setInterval(() => { show(); if (shown !== first) show(first); }, 20);',
      /went back/,
    ],
  ];
  test.each(cases)('%s: %s', async (verdict, sequence, code, says) => {
    const outcome = await conform([sequence], program(code), '--timeout', '1s');
    const [report] = documents(outcome.stdout);
    expect(report).toMatchObject({ name: sequence, verdict, says: expect.stringMatching(says) as string });
    expect(outcome.code).toBe(1);
  });

  test('late, if it comes between one deadline and two', async () => {
    const code =
      'show(); setInterval(() => { const read = digest(); setTimeout(() => show(read), 6_000); }, 50);';
    const { stdout } = await conform(['burst-0ms'], program(code), '--timeout', '4s');
    expect(documents(stdout)[0]).toMatchObject({ verdict: 'late' });
  });
});

test('--lines content takes the contents, as they are or as a JSON string', async () => {
  const code = `setInterval(() => { const read = content(); if (read) { const text = String(read);
    const line = text.includes('\\n') ? JSON.stringify(text) : text;
    if (line !== shown) console.log((shown = line)); } }, 20);`;
  const { stdout } = await conform(['swap', 'certificate-rotation'], program(code), '--lines', 'content');
  const wrong = documents(stdout).filter(
    ({ event, verdict }) => event === 'sequence' && !['right', 'skipped'].includes(verdict),
  );
  expect(wrong).toEqual([]);
});

test('a signal ends it with the code of a shell; no process and no file is left', async () => {
  const directory = temporaryDirectory();
  const pids = join(temporaryDirectory(), 'pids');
  // A process of its own that the program has started, and both are stopped when the signal comes.
  const code = `require('node:child_process').spawn('sleep', ['1000']);
    require('node:fs').appendFileSync('${pids}', process.pid + '\\n'); setInterval(show, 20);`;
  const names = ['stopped', 'stopped-long', 'swap'].flatMap((name) => ['--only', name]);
  const suite = startCli(['conformance', ...names, '--timeout', '60s', '--', ...program(code)], {
    env: { TMPDIR: directory },
  });
  await expect.poll(() => readdirSync(directory).length).toBeGreaterThan(0);
  await expect
    .poll(() => (readdirSync(join(pids, '..')).length > 0 ? readFileSync(pids, 'utf8') : ''))
    .toMatch(/\d\n/);
  suite.child.kill('SIGINT');
  expect((await suite.finished()).code).toBe(130);
  expect(readdirSync(directory)).toEqual([]);
  const left = readFileSync(pids, 'utf8').trim().split('\n').map(Number).filter(isRunning);
  expect(left).toEqual([]);
});

test('--list describes at least 40 sequences, in the words and under the headings of the page', async () => {
  const { code, stdout } = await commands.run(['conformance', '--list', '--json']);
  const { sequences } = JSON.parse(stdout) as { readonly sequences: readonly Listed[] };
  expect(code).toBe(0);
  expect(new Set(sequences.map(({ name }) => name)).size).toBe(sequences.length);
  expect(sequences.length).toBeGreaterThanOrEqual(40);
  const text = textOf('docs/conformance.md');
  const missing = sequences.filter(({ name, says }) => !text.includes(`| \`${name}\` | ${says} |`));
  expect(missing).toEqual([]);
  const listed = (await commands.run(['conformance', '--list', '--only', 'gap-20ms', '--only', 'limits']))
    .stdout;
  const titles = [...listed.matchAll(/^(\S.*) \(\w+\):$/gm)].map(([, title]) => title);
  expect(titles).toHaveLength(2);
  expect(titles.filter((title) => !text.includes(`### ${title}\n`))).toEqual([]);
});
