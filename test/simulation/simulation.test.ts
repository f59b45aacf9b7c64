/** Schedules from fixed seeds; `docs/invariants.md` has the invariants. A failure is printed with the command that repeats it. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

// @ts-expect-error -- plain JavaScript, which `npm run simulate` runs as it is
import { bundle } from './bundle.mjs';
// @ts-expect-error -- plain JavaScript, too
import { MUTANTS } from './mutants.mjs';

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'resilient-watcher-simulation-'));
const file = join(directory, 'main.mjs');

const bundled = bundle as (entry: string, outfile: string, mutant?: object) => Promise<void>;
beforeAll(() => bundled('main.ts', file));
afterAll(() => rmSync(directory, { recursive: true }));

async function simulate(...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, ['--max-semi-space-size=32', file, ...args]).catch(
    (error: unknown) => error as { stdout: string },
  );
  return stdout;
}

/** The kinds that one process runs in turn: it is twice as fast once it is warm. */
const SHARES = [
  ['key,volume,inside,group,file,directory,tree,write-file', 14_000],
  ['groups,on,around,links,hang,write-volume', 4_000],
  ['git-sync,cert-manager,alternating,recreated,renamed,mounted,neighbors', 3_500],
  ['polled-key,polled-volume,polled-group,polled-tree,polled-links,leave,regroup', 1_050],
] as const;

/** The work is bounded by its counts, and takes minutes on a machine whose cores are taken. */
const HANG_LIMIT = { timeout: 600_000 };

test.concurrent.each(SHARES)(
  'the invariants hold in schedules of the kinds %s',
  HANG_LIMIT,
  async (kinds, runs) => {
    expect(await simulate('--kind', kinds, '--runs', String(runs))).toMatch(
      new RegExp(`^${runs} schedules in .*\\n$`),
    );
  },
);

/** The first decisions of a schedule with two publications. */
const ONE_SWAP = '0,0,0,0,0,1';

test.concurrent.each(['volume'])(
  'the invariants hold wherever others act in a schedule of the kind %s with one swap',
  HANG_LIMIT,
  async (kind) => {
    expect(await simulate('--kind', kind, '--exhaustive', '--choices', ONE_SWAP)).toMatch(
      /^\d{3,} schedules in .*\n$/,
    );
  },
);

/** Each durability, each fate, and each call before which it is met; at the end, writes that are synchronous. */
test.concurrent.each([
  ['write-file', '0,0,0,0,0,*,*,*'],
  ['write-volume', '0,0,0,0,0,*,*,*'],
  ['write-file', '0,0,0,0,0,1,1,*,0,0,0,0,0,2'],
])('a writer of the kind %s is killed, fails or loses power before each call: %s', async (kind, pattern) => {
  expect(await simulate('--kind', kind, '--each', pattern)).toMatch(/^\d{2,} schedules in .*\n$/);
});

test('work is proportional to the size of each kind of target', async () => {
  expect(await simulate('--kind', 'many', '--each', '0,0,0,0,0,*')).toMatch(/^5 schedules in .*\n$/);
});

test('each mutant changes one place of the engine', () => {
  const source = (path: string): string =>
    readFileSync(new URL(`../../src/${path}`, import.meta.url), 'utf8');
  const mutants = MUTANTS as readonly (readonly [name: string, file: string, text: string])[];
  const stale = mutants.filter(([, path, text]) => source(path).split(text).length !== 2);
  expect(stale.map(([name]) => name)).toEqual([]);
});

test('a loop within a loop over 2,000 links is noticed', async () => {
  const mutant = join(directory, 'mutant.mjs');
  await bundled('main.ts', mutant, {
    file: 'fs/merge-directories.ts',
    text: 'new Set(same.flatMap((each) => each.entries ?? []))',
    replacement:
      'same.flatMap((each) => each.entries ?? []).filter((name, at, all) => all.findIndex((each) => each === name) === at)',
  });
  const args = [mutant, '--kind', 'many', '--each', '0,0,0,0,0,0'];
  const { stdout } = await run(process.execPath, args).catch((error: unknown) => error as { stdout: string });
  expect(stdout).toMatch(/invariant 9: links: \d+ blocks/);
});

test('a seed determines a schedule completely', async () => {
  const trace = (await simulate('--kind', 'around', '--seed', '7', '--trace')).split('\n').slice(0, -2);
  expect(trace.length).toBeGreaterThan(200);
  expect((await simulate('--kind', 'around', '--seed', '7', '--trace')).split('\n').slice(0, -2)).toEqual(
    trace,
  );
});
