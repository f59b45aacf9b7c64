/**
 * Runs each test again with each change that it reaches and that nothing has noticed yet.
 *
 * | a run of a test       | passes                                        | fails                                                  |
 * |-----------------------|-----------------------------------------------|--------------------------------------------------------|
 * | with the code as it is, the first | it is run with each change that it reaches | it says nothing about changes              |
 * | with a change         | the next change                               | the code as it is, to see whether the change is why    |
 * | with the code as it is, after that | the change is noticed; the next one | something was left behind: the process ends, and another goes on |
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Test } from '@vitest/runner';
import { TestRunner } from 'vitest';

import { FakeClock } from '../../src/testing/fake-clock.js';
import { $isActive, $reach, activate, ignoreReached, isEndless, takeReached } from './active.js';

Object.assign(globalThis, { $isActive, $reach });

/** One line for each try: which change met which test, and what came of it. */
const log = process.env['TRIES'] ?? '';

interface Try {
  readonly change: number;
  readonly test: string;
  readonly is: 'tried' | 'passed' | 'noticed' | 'failed';
  readonly why?: string;
}

const wanted = new Set(JSON.parse(readFileSync(process.env['WANTED'] ?? '', 'utf8')) as number[]);

let unhandled: string | undefined;
for (const event of ['unhandledRejection', 'uncaughtException'] as const)
  process.on(event, (error: unknown) => (unhandled = String(error)));

/** A test that waits so long for nothing but other events waits for ever, ms. */
const LONGEST_IDLE_MS = 2_000;

/** No test keeps a processor busy for so long, ms. */
const LONGEST_RUN_MS = 5_000;

/** No test advances a clock so often. Many do in a loop, until what they wait for has happened. */
const MOST_ADVANCES = 20_000;

const advances = new WeakMap<FakeClock, number>();
// eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with its clock
const { advance } = FakeClock.prototype;
FakeClock.prototype.advance = function (ms) {
  const count = (advances.get(this) ?? 0) + 1;
  advances.set(this, count);
  if (count > MOST_ADVANCES) throw new Error('time passes for ever');
  return advance.call(this, ms);
};

/** How long this process has been running, and idle, ms. What it waits for a processor counts as neither. */
function times(): readonly [ran: number, idle: number] {
  const [ran = 0, waited = 0] = readFileSync('/proc/self/schedstat', 'utf8').split(' ').map(Number);
  return [ran / 1e6, performance.now() - (ran + waited) / 1e6];
}

/** Rejects once a test takes too long. */
async function tooLong(signal: AbortSignal): Promise<never> {
  const [ran, idle] = times();
  for (;;) {
    await sleep(50, undefined, { signal });
    const [ranNow, idleNow] = times();
    if (idleNow - idle > LONGEST_IDLE_MS) throw new Error('the test waits for ever');
    if (ranNow - ran > LONGEST_RUN_MS) throw new Error('the test does not end');
  }
}

/** Whether a change has been in force in this process. */
let isUsed = false;

export default class extends TestRunner {
  #waiting: number[] | undefined;
  #change: number | undefined;
  #failure: string | undefined;

  override async onBeforeRunTask(test: Test): Promise<void> {
    await super.onBeforeRunTask(test);
    this.#waiting = undefined;
    this.#change = undefined;
    this.#failure = undefined;
    // The loop of vitest compares it after each run.
    Object.assign(test, { repeats: { valueOf: () => (this.#isDone() ? -1 : Infinity) } });
  }

  #isDone(): boolean {
    return this.#waiting?.length === 0 && this.#failure === undefined;
  }

  override onBeforeTryTask(test: Test): void {
    super.onBeforeTryTask(test);
    Object.assign(test.result ?? {}, { state: 'run', errors: undefined });
    unhandled = undefined;
    if (this.#waiting === undefined) takeReached();
    else if (this.#failure === undefined) {
      this.#change = this.#waiting.shift() ?? -1;
      this.#note(test, 'tried');
      activate(this.#change);
    }
  }

  async runTask(test: Test): Promise<void> {
    const end = new AbortController();
    const late = tooLong(end.signal);
    late.catch(() => {});
    try {
      await Promise.race([TestRunner.getTestFn(test)(), late]);
    } finally {
      end.abort();
    }
  }

  onAfterRetryTask(test: Test): void {
    const why = isEndless() ? 'it goes round in a loop' : (unhandled ?? test.result?.errors?.[0]?.message);
    const isFailed = test.result?.state === 'fail' || why !== undefined;
    activate(-1);
    if (this.#waiting === undefined) {
      const reached = takeReached();
      ignoreReached();
      this.#waiting = isFailed ? [] : this.#left(test, reached);
      if (isFailed) this.#note(test, 'failed', why);
    } else if (this.#failure !== undefined) {
      if (!isFailed || !isUsed) this.#note(test, 'noticed', this.#failure);
      if (isFailed) process.exit(1);
      isUsed = true;
      this.#failure = undefined;
    } else if (isFailed) this.#failure = why ?? 'it fails';
    else {
      isUsed = true;
      this.#note(test, 'passed');
    }
  }

  #note(test: Test, is: Try['is'], why?: string): void {
    const line: Try = {
      change: this.#change ?? -1,
      test: nameOf(test),
      is,
      ...(why && { why: why.slice(0, 200) }),
    };
    appendFileSync(log, `${JSON.stringify(line)}\n`);
  }

  #left(test: Test, reached: readonly number[]): number[] {
    const tries = readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Try);
    const name = nameOf(test);
    const over = new Set(
      tries
        .filter((each) => each.is === 'noticed' || (each.is === 'passed' && each.test === name))
        .map(({ change }) => change),
    );
    return reached.filter((change) => wanted.has(change) && !over.has(change));
  }
}

const nameOf = (test: Test): string => `${test.file.name} > ${test.name}`;
