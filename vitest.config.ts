import { existsSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';

import { packages, root } from './packages/packages.mjs';
import { unitsOnWindows } from './test/windows/units/files.mjs';

/** Tests see each package as its users do, by its entry points, but from its sources. */
const alias = packages.flatMap(({ folder, entryPoints }) =>
  entryPoints.map(({ specifier, name }) => ({
    find: new RegExp(`^${specifier}$`),
    replacement: `${root}${folder}src/${name}.ts`,
  })),
);

/** Where tests are, of the library and of the packages. */
const TESTS = '{test,packages/*/test}';

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

/** What has no list of its own on Windows needs links, modes, or a kernel. */
const UNITS = process.platform === 'win32' ? unitsOnWindows : [`${TESTS}/**/*.test.ts`];

/** The tests that `npm test` leaves to the steps of `npm run test:all`, which are called as the projects here. */
const STEPS = {
  /** Programs, signals, other processes. Need the built package. */
  process: [`${TESTS}/**/process/**/*.test.ts`, '{packages/conformance/test,test/examples}/**/*.test.ts'],
  /** What only a kernel shows: mounts, limits, other users, native watchers. Need the built package. */
  kernel: [`${TESTS}/**/kernel/**/*.test.ts`, 'test/attacks/**/*.test.ts'],
  simulation: ['test/simulation/long/**/*.test.ts'],
  /** The code on the pages. Needs the built package. */
  docs: ['test/docs/runs.test.ts'],
  /** The packed tarball. Waits for the registry. */
  package: ['test/package/**/*.test.ts'],
  /** A real API server, a real kubelet. */
  cluster: ['test/{cluster,e2e}/**/*.test.ts'],
};

const isStress = process.env['STRESS'] === '1';

/**
 * A limit for a hang, not for speed: nothing in the tests waits on purpose. Three that hang one after another still leave a step
 * the time to say so.
 */
const limit = 300_000;

const step = (name: keyof typeof STEPS): TestProjectInlineConfiguration => ({
  extends: true,
  test: { name, include: STEPS[name] },
});

export default defineConfig({
  resolve: { alias },
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: UNITS, exclude: Object.values(STEPS).flat() },
      },
      step('process'),
      step('kernel'),
      step('simulation'),
      step('docs'),
      { extends: true, test: { ...step('package').test, globalSetup: 'test/package/pack.ts' } },
      step('cluster'),
    ],
    ...(process.env['SKIPPED_LIST'] && { reporters: ['default', './tools/step-reporter.mjs'] }),
    setupFiles: ['test/support/other-systems.ts', 'test/support/file-guard.ts'],
    testTimeout: limit,
    hookTimeout: limit,
    // The default of a second is one that a busy machine may take.
    expect: { poll: { timeout: 60_000, interval: 5 } },
    pool: 'forks',
    // Files share processes, which saves loading everything for each. It also proves that the library leaves nothing behind.
    isolate: false,
    // Under stress, more workers than cores: what waits for another process leaves its core to others.
    maxWorkers: availableParallelism() * (isStress ? 2 : 1),
    env: { TMPDIR: temporaryRoot() },
  },
});
