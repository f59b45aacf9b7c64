/** A change of the engine names its place by text, which a rename or an edit of `src` may remove. */
import { existsSync, readFileSync } from 'node:fs';

import { expect, test } from 'vitest';

// @ts-expect-error -- plain JavaScript, which `node test/simulation/calibrate.mjs` runs as it is
import { LOOP_IN_A_LOOP, MUTANTS } from './mutants.mjs';

type Mutant = readonly [name: string, file: string, text: string, replacement: string];
const mutants = [...(MUTANTS as readonly Mutant[]), LOOP_IN_A_LOOP as Mutant];

function placesOf(file: string, text: string): number {
  const url = new URL(`../../src/${file}`, import.meta.url);
  return existsSync(url) ? readFileSync(url, 'utf8').split(text).length - 1 : 0;
}

test('each mutant changes one place of the engine; change those that are named here in mutants.mjs, too', () => {
  const stale = mutants.filter(
    ([, file, text, replacement]) => placesOf(file, text) !== 1 || text === replacement,
  );
  expect(stale.map(([name, file]) => `${file}: ${name}`)).toEqual([]);
});

test('each mutant has a name of its own', () => {
  const names = mutants.map(([name]) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
