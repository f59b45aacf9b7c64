/** Lets Stryker run schedules of the simulation as its tests: each kind is one of them. */
import { fork } from 'node:child_process';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Schedules for each change. */
const SCHEDULES = Number(process.env.SCHEDULES);

/** Those that say which kinds reach which change. */
const FIRST_SCHEDULES = 1_000;

/** A schedule that takes longer never ends, ms; most take a few. */
const LONGEST_SCHEDULE_MS = 60_000;

class SimulationRunner {
  /** The bundle of the code that Stryker has changed. */
  #file = resolve(`build/schedules-${process.pid}.mjs`);
  #process;

  capabilities() {
    return { reloadEnvironment: true };
  }

  async init() {
    const { bundle } = await import(pathToFileURL(resolve('test/simulation/bundle.mjs')).href);
    await bundle('../../tools/mutation/schedules.ts', this.#file);
  }

  async dryRun() {
    const result = await this.#ask({ runs: FIRST_SCHEDULES });
    if (result.failure) return { status: 'error', errorMessage: result.failure };
    const { kinds, coverage = { static: {}, perTest: {} } } = result;
    const tests = kinds.map((kind) => ({ id: kind, name: kind, timeSpentMs: 1, status: 0 }));
    return { status: 'complete', tests, mutantCoverage: coverage };
  }

  async mutantRun({ activeMutant, testFilter: kinds, mutantActivation }) {
    const isStatic = mutantActivation === 'static';
    const request = { mutant: activeMutant.id, kinds, runs: SCHEDULES };
    if (isStatic) this.#end();
    const isFresh = this.#process === undefined;
    let result = await this.#ask(request, isStatic && activeMutant.id);
    if (!isFresh && result.isSpoiled) result = await this.#ask(request);
    if (isStatic) this.#end();
    const { kind = 'none', failure, isEndless } = result;
    if (isEndless) return { status: 'timeout', reason: failure ?? 'an endless loop' };
    if (failure === undefined) return { status: 'survived', nrOfTests: SCHEDULES };
    return {
      status: 'killed',
      killedBy: [kind],
      failureMessage: failure.slice(0, 1_000),
      nrOfTests: SCHEDULES,
    };
  }

  dispose() {
    this.#end();
  }

  #end() {
    this.#process?.kill('SIGKILL');
    this.#process = undefined;
  }

  /** @param mutant the change that is in force from the start. */
  #ask(request, mutant) {
    this.#process ??= fork(this.#file, {
      env: { ...process.env, ...(mutant && { __STRYKER_ACTIVE_MUTANT__: mutant }) },
      execArgv: ['--max-semi-space-size=32'],
      silent: true,
    });
    const child = this.#process;
    return new Promise((answer) => {
      let timer;
      const finish = (result) => {
        clearTimeout(timer);
        child.removeAllListeners();
        if (result.isSpoiled) this.#end();
        answer(result);
      };
      const expect = () => {
        clearTimeout(timer);
        const failure = 'a schedule does not end';
        timer = setTimeout(() => finish({ failure, isEndless: true, isSpoiled: true }), LONGEST_SCHEDULE_MS);
      };
      expect();
      child.on('message', (message) => (message === 'next' ? expect() : finish(message)));
      child.on('exit', () => finish({ failure: 'the process ended', isSpoiled: true }));
      child.send(request);
    });
  }
}

export const strykerPlugins = [{ kind: 'TestRunner', name: 'simulation', injectableClass: SimulationRunner }];
