/** Schedules from fixed seeds; `docs/invariants.md` has the invariants. A failure is printed with the command that repeats it. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

// @ts-expect-error -- plain JavaScript, which `npm run simulate` runs as it is
import { bundle } from './bundle.mjs';
// @ts-expect-error -- plain JavaScript, too
import { MUTANTS } from './mutants.mjs';

const directory = mkdtempSync(join(tmpdir(), 'resilient-watcher-simulation-'));
const bundled = bundle as (entry: string, outfile: string, mutant?: object) => Promise<void>;

/** Two at a time, which stay: half of the work of a process is to become fast. */
const processes: ChildProcess[] = [];
const idle: ChildProcess[] = [];
const waiting: ((process: ChildProcess) => void)[] = [];

function start(file: string): ChildProcess {
  const child = fork(file, { execArgv: ['--max-semi-space-size=32'] });
  processes.push(child);
  return child;
}

beforeAll(async () => {
  const file = join(directory, 'main.mjs');
  await bundled('main.ts', file);
  idle.push(start(file), start(file));
});

afterAll(async () => {
  for (const child of processes) {
    child.disconnect();
    await once(child, 'exit');
  }
  rmSync(directory, { recursive: true });
});

/** What a process prints for a command line. */
async function answer(child: ChildProcess, args: readonly string[]): Promise<string> {
  const answered = Promise.race([once(child, 'message'), once(child, 'exit')]);
  child.send(args);
  const [text] = (await answered) as unknown[];
  return String(text);
}

async function simulate(...args: string[]): Promise<string> {
  const child = idle.pop() ?? (await new Promise<ChildProcess>((resolve) => waiting.push(resolve)));
  try {
    return await answer(child, args);
  } finally {
    const next = waiting.shift();
    if (next) next(child);
    else idle.push(child);
  }
}

/** The kinds that are simulated in turn, and how many schedules; with those below, 20,000. */
const SHARES = [
  ['key,volume,inside,group,file,directory,tree,write-file', 9_500],
  ['groups,on,around,links,hang,write-volume', 2_600],
  ['git-sync,cert-manager,alternating,recreated,renamed,mounted,neighbors', 2_200],
  ['polled-key,polled-volume,polled-group,polled-tree,polled-links,leave,regroup', 800],
] as const;

/** The work is bounded by its counts, and takes minutes on a machine whose cores are taken. */
const HANG_LIMIT = { timeout: 600_000 };

test.concurrent.each(SHARES)(
  'the invariants hold in schedules of the kinds %s',
  HANG_LIMIT,
  async (kinds, runs) => {
    expect(await simulate('--kind', kinds, '--runs', String(runs))).toMatch(
      new RegExp(`^${runs} schedules in .*$`),
    );
  },
);

/** What random schedules have found since all of `npm test` ran without a violation. */
test.concurrent.each([
  ['key', 9_726],
  ['around', 1_226],
  ['alternating', 335],
  ['groups', 10_567_682],
  ['inside', 10_422_546],
])('the invariants hold in a schedule that has violated one: %s %i', HANG_LIMIT, async (kind, seed) => {
  const args = ['--kind', kind, '--seed', String(seed), '--runs', '1'];
  expect(await simulate(...args)).toMatch(/^1 schedules in .*$/);
});

/** The first decisions of a schedule with two publications. */
const ONE_SWAP = '0,0,0,0,0,1';

test.concurrent(
  'the invariants hold wherever others act in a schedule of the kind volume with one swap',
  HANG_LIMIT,
  async () => {
    expect(await simulate('--kind', 'volume', '--exhaustive', '--choices', ONE_SWAP)).toMatch(
      /^\d{3,} schedules in .*$/,
    );
  },
);

/** Each durability, each fate, and each call before which it is met; at the end, writes that are synchronous. */
test.concurrent.each([
  ['write-file', '0,0,0,0,0,*,*,*'],
  ['write-volume', '0,0,0,0,0,*,*,*'],
  ['write-file', '0,0,0,0,0,1,1,*,0,0,0,0,0,2'],
])(
  'a writer of the kind %s is killed, fails or loses power before each call: %s',
  HANG_LIMIT,
  async (kind, pattern) => {
    expect(await simulate('--kind', kind, '--each', pattern)).toMatch(/^\d{2,} schedules in .*$/);
  },
);

test.concurrent('a seed determines a schedule completely', HANG_LIMIT, async () => {
  const trace = (await simulate('--kind', 'around', '--seed', '7', '--trace')).split('\n').slice(0, -2);
  expect(trace.length).toBeGreaterThan(200);
  expect((await simulate('--kind', 'around', '--seed', '7', '--trace')).split('\n').slice(0, -2)).toEqual(
    trace,
  );
});

// At the end, because V8 forgets its optimized code when it counts.
test('work is proportional to the size of each kind of target', HANG_LIMIT, async () => {
  expect(await simulate('--kind', 'many', '--each', '0,0,0,0,0,*')).toMatch(/^5 schedules in .*$/);
});

test('each mutant changes one place of the engine', () => {
  const source = (path: string): string =>
    readFileSync(new URL(`../../src/${path}`, import.meta.url), 'utf8');
  const mutants = MUTANTS as readonly (readonly [name: string, file: string, text: string])[];
  const stale = mutants.filter(([, path, text]) => source(path).split(text).length !== 2);
  expect(stale.map(([name]) => name)).toEqual([]);
});

test('a loop within a loop over 2,000 links is noticed', HANG_LIMIT, async () => {
  const mutant = join(directory, 'mutant.mjs');
  await bundled('main.ts', mutant, {
    file: 'fs/merge-directories.ts',
    text: 'new Set(same.flatMap((each) => each.entries ?? []))',
    replacement:
      'same.flatMap((each) => each.entries ?? []).filter((name, at, all) => all.findIndex((each) => each === name) === at)',
  });
  const text = await answer(start(mutant), ['--kind', 'many', '--each', '0,0,0,0,0,0']);
  expect(text).toMatch(/invariant 9: links: \d+ blocks/);
});
