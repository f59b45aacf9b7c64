/** Changes that meet schedules of the simulation, in processes that stay. */
import { fork } from 'node:child_process';
import { join, resolve } from 'node:path';

import { bundle } from '../../test/simulation/bundle.mjs';

/** A schedule that takes longer never ends, ms; most take a few. */
const LONGEST_SCHEDULE_MS = 60_000;

/** A process that runs `schedules.ts`. */
class Runner {
  #file;
  #child;

  constructor(file) {
    this.#file = file;
  }

  /** @param {number} [change] one that is in force from the start, for this request only. */
  async ask(request, change) {
    if (change !== undefined) this.end();
    const isFresh = this.#child === undefined;
    const result = await this.#answer(request, change);
    if (result.isSpoiled || change !== undefined) this.end();
    // An earlier change may have left something behind.
    return result.isSpoiled && !isFresh ? this.ask(request) : result;
  }

  #answer(request, change) {
    const child = (this.#child ??= fork(this.#file, {
      env: { ...process.env, ...(change !== undefined && { CHANGE: String(change) }) },
      execArgv: ['--max-semi-space-size=32', '--max-old-space-size=1024', '--no-warnings'],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    }));
    return new Promise((answer) => {
      let timer;
      const finish = (result) => {
        clearTimeout(timer);
        child.removeAllListeners();
        answer(result);
      };
      const begin = () => {
        clearTimeout(timer);
        timer = setTimeout(() => finish({ isFound: true, isSpoiled: true }), LONGEST_SCHEDULE_MS);
      };
      child.on('message', (message) => (message === 'next' ? begin() : finish(message)));
      child.on('exit', () => finish({ isFound: true, isSpoiled: true }));
      child.send(request);
    });
  }

  end() {
    this.#child?.kill('SIGKILL');
    this.#child = undefined;
  }
}

/** The order in which schedules are tried: those that have noticed most first, then one of each kind after the other. */
function inOrder(seeds, kinds, noticed) {
  const counts = {};
  const rounds = new Map(seeds.map((seed) => [seed, (counts[kinds[seed]] = (counts[kinds[seed]] ?? 0) + 1)]));
  return [...seeds].sort((a, b) => noticed[b] - noticed[a] || rounds.get(a) - rounds.get(b));
}

/**
 * @param {{ texts: Map<string, string>, changes: { id: number }[], directory: string }} changed as from `changesOf`.
 * @param {{ most: number, of: number, concurrency: number }} options at most `most` schedules for each change, out of the first `of`.
 * @param {(change: { id: number }, result: { isFound: boolean, isReached: boolean }) => void} met
 */
export async function meetSchedules({ texts, changes, directory }, { most, of, concurrency }, met) {
  const file = join(directory, 'schedules.mjs');
  const changed = (name, text) => texts.get(name) ?? text;
  await bundle('../../tools/mutation/schedules.ts', file, changed, [resolve('tools/mutation/active.ts')]);
  const runners = Array.from({ length: concurrency }, () => new Runner(file));
  const { onImport, kinds, reached, failures } = await runners[0].ask({ of });
  for (const failure of failures) console.error(`without a change: ${failure}`);
  const reaching = new Map(changes.map(({ id }) => [id, []]));
  for (const [seed, ids] of reached.entries()) for (const id of ids) reaching.get(id)?.push(seed);
  const noticed = new Uint32Array(of);
  const waiting = [...changes];
  const work = async (runner) => {
    for (let change = waiting.shift(); change; change = waiting.shift()) {
      const { id } = change;
      const own = reaching.get(id);
      // What is evaluated by an import needs a process of its own. Any schedule may notice it.
      const isStatic = own.length === 0 && onImport.includes(id);
      const seeds = inOrder(isStatic ? [...kinds.keys()] : own, kinds, noticed).slice(0, most);
      const isReached = seeds.length > 0;
      const { isFound = false, seed } = isReached
        ? await runner.ask({ change: id, seeds }, isStatic ? id : undefined)
        : {};
      if (seed !== undefined && !isStatic) noticed[seed] += 1;
      met(change, { isFound, isReached });
    }
  };
  await Promise.all(runners.map(work));
  for (const runner of runners) runner.end();
}
