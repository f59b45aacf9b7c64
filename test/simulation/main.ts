/**
 * Runs schedules: `npm run simulate -- [--seed N] [--kind K] [--runs N]`. The first one that violates an invariant is
 * made as short as possible and printed. The exit code is 1 then.
 */
import { realNow } from './globals.js';
import { parseArgs } from 'node:util';

import { each, explore } from './explore.js';
import { ALL_KINDS, runSchedule, type Outcome } from './schedule.js';
import { shrink } from './shrink.js';
import { tableOf } from './table.js';
import type { Violation } from './world.js';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    kind: { type: 'string' },
    runs: { type: 'string', default: '1000' },
    /** The decisions of a schedule, as printed, or the first ones. */
    choices: { type: 'string' },
    /** Print the schedule even if it violates nothing. */
    trace: { type: 'boolean', default: false },
    /** Let others act at each place of the schedule that `choices` begins. */
    exhaustive: { type: 'boolean', default: false },
    /** At how many places others act. */
    interruptions: { type: 'string', default: '1' },
    /** The first decisions of schedules without interruptions; `*` stands for each value. */
    each: { type: 'string' },
    /** Only say which schedule is the first one. */
    first: { type: 'boolean', default: false },
    /** Count the violations instead of stopping at the first one. */
    survey: { type: 'boolean', default: false },
  },
});

const kinds = values.kind?.split(',') ?? ALL_KINDS;
const [first, runs] = [Number(values.seed), Number(values.runs)];
const began = realNow();
let count = 0;

async function print(kind: string, seed: number, given: readonly number[] | undefined): Promise<void> {
  const { violation, trace } = await runSchedule({ kind, seed, given }, true);
  console.log(tableOf(trace));
  console.log(violation?.message ?? 'no invariant is violated');
}

async function all(): Promise<boolean> {
  if (values.exhaustive || values.each !== undefined) return exhaustively();
  if (values.choices !== undefined) {
    await print(kinds[0] ?? '', first, values.choices.split(',').map(Number));
    return true;
  }
  if (values.trace) {
    await print(kinds[0] ?? '', first, undefined);
    return true;
  }
  const before = await runFirst();
  for (let seed = first; seed < first + runs; seed += 1) {
    const kind = kinds[seed % kinds.length] ?? '';
    const { violation, choices } = await runSchedule({ kind, seed });
    count += 1;
    if (!violation) continue;
    if (values.survey) {
      survey(kind, seed, violation);
      continue;
    }
    console.log(`seed ${seed}, kind ${kind}, after ${count} schedules: ${violation.message}`);
    if (values.first) return false;
    const given = await shrink({ kind, seed }, choices.made, violation.invariant);
    await print(kind, seed, given);
    console.log(
      `again: npm run simulate -- --kind ${kind} --seed ${seed} --choices ${given.join(',') || '0'}`,
    );
    return false;
  }
  if (!(await isReproducible(before))) return false;
  for (const line of found.values()) console.log(`${line.count} × ${line.text}`);
  return found.size === 0;
}

/** Whether the first schedule is still the same, whatever ran since. */
async function isReproducible(before: string): Promise<boolean> {
  const isSame = (await runFirst()) === before;
  if (!isSame) console.log(`seed ${first} is another schedule after the others`);
  return isSame;
}

async function runFirst(): Promise<string> {
  const { choices } = await runSchedule({ kind: kinds[first % kinds.length] ?? '', seed: first });
  return choices.made.join();
}

async function exhaustively(): Promise<boolean> {
  let isFine = true;
  for (const kind of kinds) {
    const ran = ({ violation, choices }: Outcome): boolean => {
      count += 1;
      if (violation) console.log(`${kind}, --choices ${choices.made.join(',')}: ${violation.message}`);
      isFine &&= !violation;
      return !isFine;
    };
    const given = values.choices?.split(',').map(Number);
    const pattern = values.each?.split(',').map((value) => (value === '*' ? undefined : Number(value)));
    if (pattern) await each(kind, first, pattern, ran);
    else await explore({ kind, seed: first, given }, Number(values.interruptions), ran);
  }
  return isFine;
}

const found = new Map<string, { count: number; readonly text: string }>();

function survey(kind: string, seed: number, { invariant, message }: Violation): void {
  const key = `${kind} ${invariant}`;
  const text = `${kind}, first with seed ${seed}: ${message.slice(0, 300)}`;
  const known = found.get(key);
  if (known) known.count += 1;
  else found.set(key, { count: 1, text });
}

process.exitCode = (await all()) ? 0 : 1;
const seconds = (realNow() - began) / 1_000;
console.log(`${count} schedules in ${seconds.toFixed(1)} s, ${Math.round(count / seconds)} a second`);
