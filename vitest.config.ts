import { existsSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
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
  'cli/token',
  'watch/scenarios/parcel',
  'write/atomic-processes',
  'watch/scenarios/',
  'kernel/',
  'cli/',
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

export default defineConfig({
  resolve: {
    alias: [
      { find: /^resilient-watcher$/, replacement: source('index.ts') },
      { find: /^resilient-watcher\/([\w-]+)$/, replacement: source('$1.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/support/telemetry-guard.ts'],
    exclude: ['test/soak/**', 'test/package/**', 'test/site/**', 'test/types/**'],
    // A limit for a hang, not for speed: nothing in the suite waits on purpose.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // The default of a second is one that a busy machine may take.
    expect: { poll: { timeout: 60_000, interval: 20 } },
    pool: 'forks',
    // Files share processes, which saves loading everything for each. It also proves that the library leaves nothing behind.
    isolate: false,
    // Some of them wait for the kernel or for processes of their own.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongestFirst },
    env: { TMPDIR: temporaryRoot() },
  },
});
