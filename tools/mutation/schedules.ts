/** A process that runs schedules of the simulation with one change of the code in force, as `simulation-runner.mjs` asks. */
import '../../test/simulation/globals.js';
import { ALL_KINDS, runSchedule } from '../../test/simulation/schedule.js';

/** What Stryker puts before each change of the code reads and counts here. */
interface Stryker {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  mutantCoverage?: unknown;
  hitCount?: number;
  hitLimit?: number;
}

interface Request {
  /** Undefined: the code as it is. */
  readonly mutant?: string;
  /** Undefined: all. */
  readonly kinds?: readonly string[];
  readonly runs: number;
}

/** So often one place of the code is not reached in a schedule that ends. */
const MOST_HITS = 200_000;

const stryker: Stryker = ((globalThis as { __stryker__?: Stryker }).__stryker__ ??= {});

/** Why this schedule fails; undefined if it does not. */
async function failureOf(kind: string, seed: number): Promise<string | undefined> {
  Object.assign(stryker, { currentTestId: kind, hitCount: 0, hitLimit: MOST_HITS });
  const { violation } = await runSchedule({ kind, seed });
  return violation && `seed ${seed}, kind ${kind}: ${violation.message}`;
}

async function run({ mutant, kinds = ALL_KINDS, runs }: Request): Promise<object> {
  for (let seed = 1; seed <= runs; seed += 1) {
    const kind = kinds[seed % kinds.length] ?? '';
    process.send?.('next');
    stryker.activeMutant = mutant;
    const failure = await failureOf(kind, seed);
    const isEndless = (stryker.hitCount ?? 0) > MOST_HITS;
    if (failure === undefined && !isEndless) continue;
    stryker.activeMutant = undefined;
    // If the same schedule fails without the change, an earlier change has left something behind.
    return { kind, failure, isEndless, isSpoiled: (await failureOf(kind, seed)) !== undefined };
  }
  return { kinds, coverage: stryker.mutantCoverage };
}

process.on('message', (request: Request) => void run(request).then((result) => process.send?.(result)));
