/** Schedules from fixed seeds; `docs/invariants.md` has the invariants. A failure is printed with the command that repeats it. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';

// @ts-expect-error -- plain JavaScript, which `npm run simulate` runs as it is
import { bundle } from './bundle.mjs';

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'resilient-watcher-simulation-'));
const file = join(directory, 'main.mjs');

beforeAll(() => (bundle as (entry: string, outfile: string) => Promise<void>)('main.ts', file));
afterAll(() => rmSync(directory, { recursive: true }));

async function simulate(...args: string[]): Promise<string> {
  const { stdout } = await run(process.execPath, ['--enable-source-maps', file, ...args]).catch(
    (error: unknown) => error as { stdout: string },
  );
  return stdout;
}

const KINDS = [
  ['key', 400],
  ['volume', 400],
  ['inside', 400],
  ['group', 400],
  ['groups', 200],
  ['on', 200],
  ['around', 200],
  ['links', 200],
  ['file', 400],
  ['directory', 200],
  ['tree', 200],
  ['hang', 200],
  ['write-file', 600],
  ['write-volume', 60],
] as const;

test.concurrent.each(KINDS)('the invariants hold in schedules of the kind %s', async (kind, runs) => {
  expect(await simulate('--kind', kind, '--runs', String(runs))).toMatch(
    new RegExp(`^${runs} schedules in .*\\n$`),
  );
});

/** The first decisions of a schedule with two publications. */
const ONE_SWAP = '0,0,0,0,0,1';

test.concurrent.each(['volume'])(
  'the invariants hold wherever others act in a schedule of the kind %s with one swap',
  async (kind) => {
    expect(await simulate('--kind', kind, '--exhaustive', '--choices', ONE_SWAP)).toMatch(
      /^\d{3,} schedules in .*\n$/,
    );
  },
);

test('a seed determines a schedule completely', async () => {
  const trace = (await simulate('--kind', 'around', '--seed', '7', '--trace')).split('\n').slice(0, -2);
  expect(trace.length).toBeGreaterThan(200);
  expect((await simulate('--kind', 'around', '--seed', '7', '--trace')).split('\n').slice(0, -2)).toEqual(
    trace,
  );
});
