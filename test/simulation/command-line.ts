/** What one command line asks for: schedules of some kinds, from a seed on, or all of a small case. */
import { realNow } from './globals.js';
import { parseArgs } from 'node:util';

import { each, explore } from './explore.js';
import { ALL_KINDS, runSchedule, type Outcome } from './schedule.js';
import { shrink } from './shrink.js';
import { tableOf } from './table.js';
import type { Violation } from './world.js';

const OPTIONS = {
  seed: { type: 'string', default: '1' },
  kind: { type: 'string', default: ALL_KINDS.join() },
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
} as const;

const parsed = (args: string[]) => parseArgs({ args, options: OPTIONS }).values;

export class CommandLine {
  readonly #options: ReturnType<typeof parsed>;
  readonly #print: (text: string) => void;
  readonly #kinds: readonly string[];
  readonly #first: number;
  readonly #found = new Map<string, { count: number; readonly text: string }>();
  #count = 0;

  constructor(args: string[], print: (text: string) => void) {
    this.#options = parsed(args);
    this.#print = print;
    this.#kinds = this.#options.kind.split(',');
    this.#first = Number(this.#options.seed);
  }

  /** Returns whether no invariant is violated. The first schedule that violates one is made as short as possible. */
  async run(): Promise<boolean> {
    const began = realNow();
    const isFine = await this.#all();
    const seconds = (realNow() - began) / 1_000;
    const rate = Math.round(this.#count / seconds);
    this.#print(`${this.#count} schedules in ${seconds.toFixed(1)} s, ${rate} a second`);
    return isFine;
  }

  async #all(): Promise<boolean> {
    const { exhaustive, each: pattern, choices, trace } = this.#options;
    if (exhaustive || pattern !== undefined) return this.#exhaustively();
    if (choices === undefined && !trace) return this.#fromSeeds();
    await this.#one(this.#kinds[0] ?? '', this.#first, choices?.split(',').map(Number));
    return true;
  }

  async #one(kind: string, seed: number, given: readonly number[] | undefined): Promise<void> {
    const { violation, trace } = await runSchedule({ kind, seed, given }, true);
    this.#print(tableOf(trace));
    this.#print(violation?.message ?? 'no invariant is violated');
  }

  async #fromSeeds(): Promise<boolean> {
    const before = await this.#firstDecisions();
    const end = this.#first + Number(this.#options.runs);
    for (let seed = this.#first; seed < end; seed += 1) {
      const kind = this.#kindOf(seed);
      const { violation, choices } = await runSchedule({ kind, seed });
      this.#count += 1;
      if (!violation) continue;
      if (this.#options.survey) {
        this.#survey(kind, seed, violation);
        continue;
      }
      this.#print(`seed ${seed}, kind ${kind}, after ${this.#count} schedules: ${violation.message}`);
      if (this.#options.first) return false;
      const given = await shrink({ kind, seed }, choices.made, violation.invariant);
      await this.#one(kind, seed, given);
      const decisions = given.join() || '0';
      this.#print(`again: node test/simulation/run.mjs --kind ${kind} --seed ${seed} --choices ${decisions}`);
      return false;
    }
    // The first schedule is still the same, whatever ran since.
    if ((await this.#firstDecisions()) !== before) {
      this.#print(`seed ${this.#first} is another schedule after the others`);
      return false;
    }
    for (const { count, text } of this.#found.values()) this.#print(`${count} × ${text}`);
    return this.#found.size === 0;
  }

  #kindOf(seed: number): string {
    return this.#kinds[seed % this.#kinds.length] ?? '';
  }

  async #firstDecisions(): Promise<string> {
    const seed = this.#first;
    return (await runSchedule({ kind: this.#kindOf(seed), seed })).choices.made.join();
  }

  async #exhaustively(): Promise<boolean> {
    let isFine = true;
    const { choices: given, each: pattern, interruptions } = this.#options;
    for (const kind of this.#kinds) {
      const ran = ({ violation, choices }: Outcome): boolean => {
        this.#count += 1;
        if (violation) this.#print(`${kind}, --choices ${choices.made.join()}: ${violation.message}`);
        isFine &&= !violation;
        return !isFine;
      };
      const seed = this.#first;
      if (pattern === undefined)
        await explore({ kind, seed, given: given?.split(',').map(Number) }, Number(interruptions), ran);
      else
        await each(
          kind,
          seed,
          pattern.split(',').map((value) => (value === '*' ? undefined : Number(value))),
          ran,
        );
    }
    return isFine;
  }

  #survey(kind: string, seed: number, { invariant, message }: Violation): void {
    const key = `${kind} ${invariant}`;
    const text = `${kind}, first with seed ${seed}: ${message.slice(0, 300)}`;
    const known = this.#found.get(key);
    if (known) known.count += 1;
    else this.#found.set(key, { count: 1, text });
  }
}
