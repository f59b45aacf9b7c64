/** A process that runs schedules of the simulation, with one change of the code in force after another, as `schedules.mjs` asks. */
import { activate, ignoreReached, isEndless, takeReached } from './active.js';
import '../../test/simulation/globals.js';
import { ALL_KINDS, runSchedule } from '../../test/simulation/schedule.js';

type Request =
  /** Which changes do the schedules with the seeds below this reach? */
  | { readonly of: number }
  /** Does one of these schedules notice this change? */
  | { readonly change: number; readonly seeds: readonly number[] };

const kindOf = (seed: number): string => ALL_KINDS[seed % ALL_KINDS.length] ?? '';

const violationOf = async (seed: number): Promise<Error | undefined> =>
  (await runSchedule({ kind: kindOf(seed), seed })).violation;

async function reachedBy(of: number): Promise<object> {
  const onImport = takeReached();
  const reached: Uint16Array[] = [];
  const failures: string[] = [];
  for (let seed = 0; seed < of; seed += 1) {
    process.send?.('next');
    const violation = await violationOf(seed);
    const changes = takeReached();
    // What fails anyway says nothing about a change.
    reached.push(Uint16Array.from(violation ? [] : changes));
    if (violation) failures.push(`seed ${seed}, kind ${kindOf(seed)}: ${violation.message}`);
  }
  ignoreReached();
  return { onImport, kinds: reached.map((_, seed) => kindOf(seed)), reached, failures };
}

async function tryChange(change: number, seeds: readonly number[]): Promise<object> {
  for (const seed of seeds) {
    process.send?.('next');
    activate(change);
    const violation = await violationOf(seed);
    const isWithoutEnd = isEndless();
    activate(-1);
    if (!violation && !isWithoutEnd) continue;
    // If the same schedule fails without the change, this or an earlier one has left something behind.
    return { isFound: true, seed, isSpoiled: isWithoutEnd || (await violationOf(seed)) !== undefined };
  }
  return {};
}

// What is evaluated by an import has been, with this change.
activate(-1);

process.on('message', (request: Request) => {
  const result = 'of' in request ? reachedBy(request.of) : tryChange(request.change, request.seeds);
  void result.then((answer) => process.send?.(answer));
});
