/**
 * `node tools/mutation/run.mjs FOLDER [FILE…]`: which changes of the code in `src/FOLDER` nothing notices. What no schedule of
 * the simulation notices is tried with the tests. Prints a row of the table in docs/internals/invariants.md, and what survives.
 * Stryker is not a dependency: tools/README.md says how to install it.
 */
import { relative } from 'node:path';
import { parseArgs } from 'node:util';

import { Stryker } from '@stryker-mutator/core';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    concurrency: { type: 'string', default: '1' },
    schedules: { type: 'string', default: '1000' },
  },
});
const [folder, ...files] = positionals;
// For what runs in other processes.
Object.assign(process.env, { FOLDER: folder, SCHEDULES: values.schedules });

/** What each run has in common, and what it changes. */
async function mutate(mutated, options) {
  return new Stryker({
    mutate: mutated,
    coverageAnalysis: 'perTest',
    concurrency: Number(values.concurrency),
    ignorePatterns: ['.github', '.changeset', 'packages/conformance', 'deploy', 'docs', 'examples', 'site'],
    // Standard output has the result.
    reporters: [],
    fileLogLevel: 'off',
    logLevel: 'error',
    tempDirName: 'build/mutation',
    ...options,
  }).runMutationTest();
}

const bySimulation = (mutated) =>
  mutate(mutated, {
    testRunner: 'simulation',
    plugins: ['./tools/mutation/simulation-runner.mjs'],
    // It ends what is endless by itself.
    timeoutMS: 24 * 3_600_000,
  });

const byTests = (mutated) =>
  mutate(mutated, {
    testRunner: 'vitest',
    plugins: ['@stryker-mutator/vitest-runner'],
    vitest: { configFile: 'tools/mutation/vitest.config.ts', related: false },
    // What runs when a file is imported would need a new process for each change.
    ignoreStatic: true,
  });

const isKilled = ({ status }) => status === 'Killed' || status === 'Timeout';
const isSurvivor = ({ status }) => status === 'Survived' || status === 'NoCoverage';

/** A range as the option `mutate` takes it, which counts columns from 0. */
const range = ({ fileName, location: { start, end } }) =>
  `${relative('.', fileName)}:${start.line}:${start.column - 1}-${end.line}:${end.column - 1}`;

/** The same change has the same one in both runs. */
const identity = (mutant) => `${range(mutant)} ${mutant.replacement}`;

async function bySimulationAndTests(files) {
  const all = await bySimulation(files);
  const left = all.filter((each) => !isKilled(each));
  const identities = new Set(left.map(identity));
  // Around what is left, there is also what the simulation has noticed.
  const again = await byTests([...new Set(left.map(range))]);
  return { all, left, again: again.filter((each) => identities.has(identity(each))) };
}

const { all, left, again } = await bySimulationAndTests(
  files.length > 0 ? files.map((file) => `src/${folder}/${file}`) : [`src/${folder}/**/*.ts`],
);
const survivors = again.filter(isSurvivor);
const killed = again.filter(isKilled);
const counts = [
  all.length,
  all.length - left.length,
  killed.length,
  survivors.length,
  left.length - killed.length - survivors.length,
];
console.log(`| \`${[folder, ...files].join(' ')}\` | ${counts.join(' | ')} |\n`);
for (const { fileName, location, replacement, mutatorName } of survivors)
  console.log(
    `- ${relative('.', fileName)}:${location.start.line}:${location.start.column} ${mutatorName}: ` +
      `\`${replacement.replaceAll(/\s+/g, ' ').slice(0, 100)}\``,
  );
