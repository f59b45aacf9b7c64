import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const source = (file: string): string => fileURLToPath(new URL(`./src/${file}`, import.meta.url));

/**
 * Where tests keep their files: in memory if there is room, since on a disk most of their time is `fsync`. `TMPDIR` says
 * otherwise, as in `npm run test:durable`.
 */
function temporaryRoot(): string {
  const memory = '/dev/shm';
  if (process.env['TMPDIR'] !== undefined || !existsSync(memory)) return tmpdir();
  const { bavail, bsize } = statfsSync(memory);
  return bavail * bsize >= 2 ** 30 ? memory : tmpdir();
}

/** What takes longest, most of it waiting for the kernel or for other processes. */
const longest = [
  'conformance/suite',
  'simulation/simulation',
  'cli/token',
  'examples/recipes',
  'watch/scenarios/',
  'conformance/',
  'cli/',
  'write/atomic-processes',
  'kernel/',
  'docs/runs',
  'examples/',
];

/** Begins with what takes longest, so that at the end no worker is waited for. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const index = longest.findIndex((part) => moduleId.includes(`/test/${part}`));
      return index === -1 ? longest.length : index;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

/** What takes a number of rounds, itself or through what it shares with other tests. */
const ROUNDS = /\/(?:rounds|growth|login-scene|define-scenarios)\.js'/;

/** What `npm run test:stress` runs in full, and `npm test` a few times only; see `test/support/rounds.ts`. */
function repeated(): string[] {
  return readdirSync(join(import.meta.dirname, 'test'), { encoding: 'utf8', recursive: true })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .filter((file) => ROUNDS.test(readFileSync(join(import.meta.dirname, file), 'utf8')));
}

const isStress = process.env['STRESS'] === '1';

/** A limit for a hang, not for speed: nothing in the tests waits on purpose. */
const limit = (ms: number): { testTimeout: number; hookTimeout: number } => ({
  testTimeout: ms,
  hookTimeout: ms,
});

export default defineConfig({
  resolve: {
    alias: [
      { find: /^resilient-watcher$/, replacement: source('index.ts') },
      { find: /^resilient-watcher\/([\w-]+)$/, replacement: source('$1.ts') },
    ],
  },
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'source',
          include: isStress ? repeated() : ['test/**/*.test.ts'],
          exclude: ['test/package/**', 'test/site/**', 'test/types/**'],
          ...limit(isStress ? 600_000 : 120_000),
        },
      },
      // Packs what `npm run build` has built; waits for the registry, and compiles.
      {
        extends: true,
        test: {
          name: 'package',
          include: ['test/package/**/*.test.ts'],
          globalSetup: 'test/package/pack.ts',
          ...limit(300_000),
        },
      },
      // The code on the pages.
      { extends: true, test: { name: 'types', include: ['test/types/**/*.test.ts'] } },
      // After `npm run docs`.
      { extends: true, test: { name: 'site', include: ['test/site/**/*.test.ts'], ...limit(300_000) } },
    ],
    setupFiles: ['test/support/telemetry-guard.ts'],
    ...limit(120_000),
    // The default of a second is one that a busy machine may take.
    expect: { poll: { timeout: 60_000, interval: 20 } },
    pool: 'forks',
    // Files share processes, which saves loading everything for each. It also proves that the library leaves nothing behind.
    isolate: false,
    // Some of them wait for the kernel or for processes of their own.
    maxWorkers: availableParallelism() + 4,
    sequence: { sequencer: LongestFirst },
    env: { TMPDIR: temporaryRoot() },
  },
});
