/** `watch-conformance` tells a right watcher from each kind of wrong one and why, and leaves nothing behind. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import { root, textOf } from '../../../test/docs/markdown.js';
import { Program, type Outcome } from '../../../test/support/program.js';
import { some } from '../../../test/support/rounds.js';
import { isRunning } from '../../../test/support/running.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

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

const start = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Program =>
  new Program('packages/conformance/bin.js', args, { input: '', env });

const suite = (args: readonly string[]): Promise<Outcome> => start(args).finished();

function conform(only: readonly string[], command: readonly string[], ...flags: string[]): Promise<Outcome> {
  const names = only.flatMap((name) => ['--only', name]);
  return suite(['--format', 'json', ...names, ...flags, '--', ...command]);
}

const reference = [
  process.execPath,
  join(root, 'packages/conformance/contestants/node/poll.mjs'),
  'default',
  '{path}',
];

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
    ['missed', 'swap', 'show(); setInterval(() => {}, 1e6);', /update 1 \(state 2\) was never shown/],
    ['silent', 'swap', 'setInterval(() => {}, 1e6);', /printed nothing/],
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
    const outcome = await conform([sequence], program(code), '--timeout', '1000');
    const [report] = documents(outcome.stdout);
    expect(report).toMatchObject({ name: sequence, verdict, says: expect.stringMatching(says) as string });
    expect(outcome.code).toBe(1);
  });

  test('late, if it comes between one deadline and two', async () => {
    const code =
      'show(); setInterval(() => { const read = digest(); setTimeout(() => show(read), 6_000); }, 50);';
    const { stdout } = await conform(['burst-0ms'], program(code), '--timeout', '4000');
    expect(documents(stdout)[0]).toMatchObject({ verdict: 'late' });
  });
});

describe('a failure tells why', () => {
  const lost = program('show(); setInterval(() => {}, 1e6);');
  const args = ['--only', 'swap', '--timeout', '1000', '--', ...lost];

  test('by the system calls beside the lines of the program, what is right, and the command that repeats it', async () => {
    const { stdout } = await suite(args);
    expect(stdout).toMatch(/^missed +volume\/swap: update 1 /);
    expect(stdout).toMatch(/A right program: .* no event names the file\./);
    expect(stdout).toMatch(
      /stdout +shows state 1\n.*suite +publishes state 2, which must be shown\n[^]*call +rename volume\/\.\.data_tmp volume\/\.\.data\n/,
    );
    const [, repeat = ''] = /Run it alone: npx watch-conformance ([^]*)\n0 of 1/.exec(stdout) ?? [];
    const again = await new Program(
      'packages/conformance/test/in-shell.mjs',
      [`packages/conformance/bin.js ${repeat}`],
      {
        input: '',
      },
    ).finished();
    expect([again.code, again.stdout.split(':', 1)]).toEqual([1, ['missed   volume/swap']]);
  });

  test('and at the end by what most failures have in common', async () => {
    const { stdout } = await suite([
      ...['swap', 'gap-0ms', 'secret-swap'].flatMap((name) => ['--only', name]),
      ...['--timeout', '500', '--', ...lost],
    ]);
    expect(stdout).toMatch(
      /\nWhat a right program does, .*:\n {3}2 × Watch the directory .*\(swap, secret-swap\)\n {3}1 × .*\(gap-0ms\)\n0 of 3 right/,
    );
  });

  test('a program that cannot start without the file is told to wait for it', async () => {
    const { stdout } = await conform(['volume-missing'], program('show(); readFileSync(process.argv[1]);'));
    expect(documents(stdout)[0]).toMatchObject({
      verdict: 'crashed',
      advice: expect.stringMatching(/^Catch the errors .* Treat a missing file as a moment/) as string,
    });
  });

  test('a program that does not exist is to be started by hand', async () => {
    const { stdout } = await conform(['swap'], ['node', '/no/such/program.mjs', '{path}']);
    expect(documents(stdout)[0]).toMatchObject({
      verdict: 'crashed',
      advice: expect.stringMatching(/^See that the program starts/) as string,
    });
  });

  test('in TAP and in JUnit', async () => {
    const [tap, junit] = await Promise.all([
      suite(['--format', 'tap', ...args]),
      suite(['--format', 'junit', ...args]),
    ]);
    expect(tap.stdout).toMatch(
      /^TAP version 14\n1\.\.1\nnot ok 1 - volume\/swap\n {2}---\n {2}message: "missed: /,
    );
    expect(junit.stdout).toMatch(
      /tests="1" failures="1" skipped="0">\n {2}<testcase classname="volume" name="swap"><failure type="missed"/,
    );
    expect(junit.stdout).not.toMatch(/[^\n\t -~]/);
  });

  test('a program that prints something else has its first line quoted', async () => {
    const { stdout } = await conform(
      ['swap'],
      program('setInterval(() => console.log("<ready>"), 50);'),
      '--timeout',
      '500',
    );
    expect(documents(stdout)[0]).toMatchObject({
      verdict: 'silent',
      says: expect.stringMatching(/no SHA-256.*"<ready>"/) as string,
    });
  });
});

test('a wrong command line, and a program that is not there, end it at once with 2', async () => {
  const cases: readonly (readonly [args: readonly string[], says: RegExp])[] = [
    [['--', './watch'], /with \{path\} where the path belongs/],
    [[], /the program follows after --/],
    [['python3', 'watch.py', '{path}'], /the program follows after --/],
    [['--only', 'swop', '--', 'sh', '{path}'], /there is no sequence swop; --list shows all/],
    [['--jobs', '0', '--', 'sh', '{path}'], /--jobs must be a number from 1/],
    [['--format', 'xml', '--', 'sh', '{path}'], /--format must be text or json or tap or junit/],
    [['--colour'], /--colour/],
    [['--', 'no-such-program', '{path}'], /cannot start no-such-program: it is not in PATH/],
    [['--', '/no/such/program', '{path}'], /it is no executable file/],
  ];
  const outcomes = await Promise.all(cases.map(([args]) => suite(args)));
  expect(outcomes).toEqual(
    cases.map(([, says]) => ({ code: 2, stdout: '', stderr: expect.stringMatching(says) as string })),
  );
});

test('the suite imports nothing of the library, and depends on no package', () => {
  const folder = join(root, 'packages/conformance/src');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const imported = files.flatMap((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(/from '([^']+)'/g)].map(([, name = '']) =>
      name.startsWith('.') ? join(folder, file, '..', name) : name,
    ),
  );
  expect(imported.filter((name) => !name.startsWith('node:') && !name.startsWith(folder))).toEqual([]);
  expect(
    JSON.parse(readFileSync(join(root, 'packages/conformance/package.json'), 'utf8')),
  ).not.toHaveProperty('dependencies');
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
  const running = start([...names, '--timeout', '60000', '--', ...program(code)], { TMPDIR: directory });
  await expect.poll(() => readdirSync(directory).length).toBeGreaterThan(0);
  await expect
    .poll(() => (readdirSync(join(pids, '..')).length > 0 ? readFileSync(pids, 'utf8') : ''))
    .toMatch(/\d\n/);
  running.child.kill('SIGINT');
  expect((await running.finished()).code).toBe(130);
  expect(readdirSync(directory)).toEqual([]);
  const left = readFileSync(pids, 'utf8').trim().split('\n').map(Number).filter(isRunning);
  expect(left).toEqual([]);
});

test('--measure prints a document for the measure asked for, with plausible numbers, and ends with 0', async () => {
  const { code, stdout } = await suite([
    ...['--measure', '--only', 'sets', '--format', 'json', '--'],
    ...reference,
  ]);
  expect([code, documents(stdout)]).toEqual([
    0,
    [
      {
        ...{ event: 'measure', name: 'sets' },
        says: expect.stringMatching(/^\d+ torn sets in 200 swaps$/) as string,
        values: { torn: expect.toSatisfy((torn: number) => torn >= 0 && torn <= 200) as number, swaps: 200 },
      },
    ],
  ]);
});

test('--measure tells that with this library a mount which hangs, from the start or later, stops nothing else', async () => {
  const adapter = join(root, 'packages/conformance/contestants/node/resilient-watcher.mjs');
  const command = [process.execPath, adapter, 'default', '{path}'];
  const { stdout } = await suite(['--measure', '--only', 'hang', '--format', 'json', '--', ...command]);
  const [{ says, values } = { says: '', values: undefined }] = documents(stdout) as readonly (Report & {
    readonly values?: object;
  })[];
  if (says.startsWith('skipped')) return;
  expect(values).toEqual({ stops: 'nothing else', later: 'nothing else' });
});

test('a signal ends a measure with the code of a shell; no process and no file is left', async () => {
  const directory = temporaryDirectory();
  const pids = join(temporaryDirectory(), 'pids');
  const code = `require('node:fs').writeFileSync('${pids}', process.pid + '\\n'); setInterval(show, 20);`;
  const args = ['--measure', '--only', 'idle', '--', ...program(code)];
  const running = start(args, { TMPDIR: directory });
  await expect.poll(() => (existsSync(pids) ? readFileSync(pids, 'utf8') : '')).toMatch(/\d\n/);
  running.child.kill('SIGTERM');
  expect((await running.finished()).code).toBe(143);
  expect([readdirSync(directory), isRunning(Number(readFileSync(pids, 'utf8')))]).toEqual([[], false]);
});

test.each([
  ['the suite', ['--only', 'swap', '--timeout', '60000']],
  ['a measure', ['--measure', '--only', 'idle']],
])('SIGKILL of %s leaves no process of the program and no file', async (_, flags) => {
  const directory = temporaryDirectory();
  const pids = join(temporaryDirectory(), 'pids');
  const code = `const { pid } = require('node:child_process').spawn('sleep', ['1000']);
    require('node:fs').writeFileSync('${pids}', process.pid + ' ' + pid + '\\n'); show();
    setTimeout(() => {}, 60_000);`;
  const running = start([...flags, '--', ...program(code)], { TMPDIR: directory });
  await expect.poll(() => (existsSync(pids) ? readFileSync(pids, 'utf8') : '')).toMatch(/\d\n/);
  running.child.kill('SIGKILL');
  await running.finished();
  const left = (): number[] => readFileSync(pids, 'utf8').trim().split(' ').map(Number).filter(isRunning);
  await expect.poll(() => [readdirSync(directory), left()]).toEqual([[], []]);
});

test('--list describes at least 40 sequences, in the words and under the headings of the page', async () => {
  const { code, stdout } = await suite(['--list', '--format', 'json']);
  const { sequences } = JSON.parse(stdout) as { readonly sequences: readonly Listed[] };
  expect(code).toBe(0);
  expect(new Set(sequences.map(({ name }) => name)).size).toBe(sequences.length);
  expect(sequences.length).toBeGreaterThanOrEqual(40);
  const text = textOf('packages/conformance/docs/conformance.md');
  const missing = sequences.filter(({ name, says }) => !text.includes(`| \`${name}\` | ${says} |`));
  expect(missing).toEqual([]);
  const listed = (await suite(['--list', '--only', 'gap-20ms', '--only', 'limits'])).stdout;
  const titles = [...listed.matchAll(/^(\S.*) \(\w+\):$/gm)].map(([, title]) => title);
  expect(titles).toHaveLength(2);
  expect(titles.filter((title) => !text.includes(`### ${title}\n`))).toEqual([]);
});
