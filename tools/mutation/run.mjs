/**
 * `node tools/mutation/run.mjs FILE…`: which changes of the code in these files of `src` nothing notices; `fs/` are the files there.
 * A change meets schedules of the simulation that reach it, and what these leave meets the tests that reach it. Prints the rows of
 * the table in docs/internals/invariants.md and what survives, at the end or when it is interrupted. Stryker is not a dependency:
 * tools/README.md says how to install it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { changesOf } from './changes.mjs';
import { meetSchedules } from './schedules.mjs';
import { meetTests } from './tests.mjs';

const { values, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    concurrency: { type: 'string', default: '1' },
    /** For each change. */
    schedules: { type: 'string', default: '200' },
    /** They are chosen from the first so many. */
    of: { type: 'string', default: '4000' },
    /** `2/4`: the second of four equal shares of the changes, from everywhere. */
    share: { type: 'string', default: '1/1' },
    /** Files or directories of tests. */
    tests: { type: 'string', multiple: true, default: ['test/fs', 'test/watch'] },
  },
});

const changed = await changesOf(names);
const [which, shares] = values.share.split('/').map(Number);
const changes = changed.changes.filter(({ id }) => id % shares === which % shares);
const left = new Map(changes.map((change) => [change.id, { ...change, is: 'not run' }]));
const directory = mkdtempSync(join(tmpdir(), 'mutation-'));

const COLUMNS = ['found by schedules', 'found by tests', 'survived', 'reached by none', 'not run'];

process.once('SIGINT', () => process.exit(130));
process.once('exit', () => {
  const all = [...left.values()];
  console.log(`| code | changes | ${COLUMNS.join(' | ')} |`);
  for (const file of new Set(all.map((change) => change.file))) {
    const own = all.filter((change) => change.file === file);
    const counts = COLUMNS.map((column) => own.filter(({ is }) => is === column).length);
    console.log(`| \`${file}\` | ${own.length} | ${counts.join(' | ')} |`);
  }
  for (const { is, file, line, column, kind, replacement } of all)
    if (!is.startsWith('found'))
      console.log(`- ${is}: ${file}:${line}:${column} ${kind}: \`${replacement.slice(0, 100)}\``);
  // Last, as what is ended with this process may still write there.
  rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
});

const concurrency = Number(values.concurrency);
const most = Number(values.schedules);
await meetSchedules(
  { texts: changed.texts, changes, directory },
  { most, of: Number(values.of), concurrency },
  ({ id }, { isFound, isReached }) => {
    left.get(id).is = isFound ? 'found by schedules' : isReached ? 'survived' : 'reached by none';
  },
);
await meetTests(
  { names, changes: [...left.values()].filter(({ is }) => is !== 'found by schedules'), directory },
  { tests: values.tests, concurrency },
  ({ id }, isFound) => {
    left.get(id).is = isFound || left.get(id).is === 'found by tests' ? 'found by tests' : 'survived';
  },
);
