/** Runs command lines of the simulation in processes that stay: half of the work of a process is to become fast. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';

// @ts-expect-error -- plain JavaScript, which `node test/simulation/run.mjs` runs as it is
import { bundle, changeOf } from './bundle.mjs';

const bundled = bundle as (
  entry: string,
  outfile: string,
  change?: unknown,
  inject?: readonly string[],
  platform?: string,
) => Promise<void>;

/** What a process prints for a command line. */
async function answer(child: ChildProcess, args: readonly string[]): Promise<string> {
  const answered = Promise.race([once(child, 'message'), once(child, 'exit')]);
  child.send(args);
  const [text] = (await answered) as unknown[];
  return String(text);
}

export interface Simulation {
  /** Resolves with what is printed; waits while all processes are busy. */
  readonly run: (...args: string[]) => Promise<string>;
  /** The same in a process of its own, with a change of the engine. */
  readonly runMutant: (mutant: object, ...args: string[]) => Promise<string>;
}

/**
 * To be called where `beforeAll` may be; the processes end after the last test there.
 * @param platform of the machine, as in `process.platform`.
 */
export function startSimulation(count: number, platform = 'linux'): Simulation {
  const directory = mkdtempSync(join(tmpdir(), 'resilient-watcher-simulation-'));
  const processes: ChildProcess[] = [];
  const idle: ChildProcess[] = [];
  const waiting: ((process: ChildProcess) => void)[] = [];

  const start = (file: string): ChildProcess => {
    const child = fork(file, { execArgv: ['--max-semi-space-size=32', '--no-warnings'] });
    processes.push(child);
    return child;
  };

  beforeAll(async () => {
    const file = join(directory, 'main.mjs');
    await bundled('main.ts', file, undefined, [], platform);
    idle.push(...Array.from({ length: count }, () => start(file)));
  });

  afterAll(async () => {
    for (const child of processes) {
      child.disconnect();
      await once(child, 'exit');
    }
    rmSync(directory, { recursive: true });
  });

  return {
    async run(...args) {
      const child = idle.pop() ?? (await new Promise<ChildProcess>((resolve) => waiting.push(resolve)));
      try {
        return await answer(child, args);
      } finally {
        const next = waiting.shift();
        if (next) next(child);
        else idle.push(child);
      }
    },
    async runMutant(mutant, ...args) {
      const file = join(directory, 'mutant.mjs');
      await bundled('main.ts', file, (changeOf as (mutant: object) => unknown)(mutant));
      return answer(start(file), args);
    },
  };
}
