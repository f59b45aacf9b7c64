/**
 * One schedule: a machine, the actors on it, and the library in one of its processes.
 *
 * | when                                   | who may go on                                                          |
 * |----------------------------------------|------------------------------------------------------------------------|
 * | before each system call of the library | any actor, for any number of its steps; or time passes                 |
 * | between the phases of a turn           | the same                                                               |
 * | a turn: timers, events, answers of     | the library, in the order in which the event loop of Node.js has them; |
 * | calls, immediates                      | answers in any order                                                   |
 * | nobody has anything to do              | time goes on to the next timer, or to the actor that sleeps shortest   |
 */
import { randomOf } from '../support/seeded-random.mjs';
import type { Choices } from './choices.js';
import { setRandom, settled, settledAfterEach, setUser } from './globals.js';
import { insidePath } from '../../src/core/ports/platform-path.js';
import { Errno, Machine, type Platform, type Process } from './machine/machine.js';
import type { NativeParcel } from './machine/parcel.js';
import { clocksOf } from './skew.js';
import * as time from './time.js';

/** The bundle is one for a platform. */
const PLATFORM = process.platform as Platform;

/** What an actor yields after each system call: nothing, or how long it does nothing, ms. */
export type Steps = Generator<number | undefined, void, undefined>;

interface Actor {
  readonly name: string;
  readonly process: Process;
  readonly steps: Steps;
  wakesAt: number;
}

/** Who did what, for the printed table. */
export interface Entry {
  readonly ms: number;
  readonly who: string;
  readonly what: string;
}

/** A schedule that the library does not survive. */
export class Violation extends Error {
  readonly invariant: number;

  /** @param invariant the number in docs/internals/invariants.md. */
  constructor(invariant: number, message: string) {
    super(`invariant ${invariant}: ${message}`);
    this.invariant = invariant;
  }
}

/** After this time, a promise that is still pending is never settled, ms. */
const LONGEST_CALL_MS = 60_000;

/** Calls that change nothing. */
const LOOKUPS = new Set(['lstat', 'stat', 'readlink', 'readdir', 'close']);

/** How calls fail, as long as there are actors. */
const FAULTS = ['EIO', 'EACCES', 'EMFILE', 'ESTALE', 'ENOMEM'];

/** How many steps actors make in such a moment before time passes, on average. */
const STEPS_A_PASS = 16;

/** More turns than any schedule needs. */
const MAX_TURNS = 20_000;

export class World {
  readonly choices: Choices;
  readonly random: () => number;
  readonly machine: Machine;
  /** The process that uses the library. */
  readonly library: Process;
  /** Undefined unless the schedule is to be printed. */
  readonly trace: Entry[] | undefined;
  /** Called after each step of an actor that may have changed something. */
  readonly afterStep: (() => void)[] = [];
  /** Called at the beginning of each turn, when all promises have been continued. */
  readonly eachTurn: (() => void)[] = [];
  /** The native module of the backend `parcel`, if it is used. */
  parcel: NativeParcel | undefined;
  /** What tells the library of events. */
  backend: 'fs' | 'parcel' = 'fs';
  /** The system calls that the library has made. */
  readonly calls: string[] = [];
  /** How many turns of the event loop had something to do. */
  turns = 0;
  /** How probable it is that somebody acts between two turns: with each turn, one call of the thread pool is answered. */
  between = 0.15;
  /** Whether a publication may have no keys at all. */
  canBeEmptied = false;
  /** When somebody but the library last changed anything, ms. */
  changedAt = -Infinity;
  /** From when on nobody but the library does anything, ms. */
  quietSince = Infinity;
  /** How probable it is that somebody acts before a call of the library. */
  readonly #density: number;
  /** How probable it is that somebody who acts goes on. */
  readonly #persistence: number;
  /** How probable it is that a call of the library fails. */
  readonly #faults: number;
  /** Whether calls fail or events are lost, so that only a resync finds everything. */
  readonly isLossy: boolean;
  /** Whether the clocks of the library and of the file systems may say nothing about each other. */
  areClocksFar: boolean;
  /** Whether the clock of the file system is set back. */
  readonly isSetBack: boolean;
  /** Whether calls fail. */
  readonly canFail: boolean;
  #actors: Actor[] = [];
  /** Whether an actor may have changed something. */
  #hasChanged = false;
  readonly #partial = new Map<string, number>();
  /** The files that are being written in place. */
  readonly #written = new Set<string>();

  constructor(choices: Choices, seed: number, isTraced: boolean, areWriters: boolean) {
    time.resetTime();
    this.choices = choices;
    this.random = randomOf(seed ^ 0x5eed);
    setRandom(this.random);
    setUser(0);
    this.trace = isTraced ? [] : undefined;
    const { skewAt, areFar, isSetBack } = clocksOf(seed, areWriters);
    this.areClocksFar = areFar;
    this.isSetBack = isSetBack;
    this.machine = new Machine({
      random: this.random,
      tickMs: choices.oneOf([4, 0, 10] as const),
      now: () => time.wallClock() + skewAt(time.elapsed()),
      elapsed: time.elapsed,
      platform: PLATFORM,
    });
    this.#density = choices.oneOf([0.02, 0.005, 0.08, 0.3]);
    this.#faults = choices.oneOf([0, 0, 0, 0, 0.02, 0.15]);
    if (choices.choose(8) === 1) this.machine.limits.queuedEvents = 3;
    this.#persistence = choices.oneOf([0.6, 0.9, 0.97]);
    this.canFail = this.#faults > 0;
    this.isLossy = this.canFail || this.machine.limits.queuedEvents === 3;
    this.library = this.machine.process({
      before: (call, path) => this.#beforeCall(call, path),
      pathOf: (path) => insidePath(path),
    });
  }

  /** Ms since the schedule began. */
  get now(): number {
    return time.elapsed();
  }

  note(who: string, what: string, path?: string): void {
    this.trace?.push({ ms: this.now, who, what: path === undefined ? what : `${what} ${path}` });
  }

  /** Somebody who acts between the calls of the library. @param isRemote on another computer, so that no event tells it. */
  actor(name: string, list: (fs: Process['fs']) => Steps, { isRemote = false } = {}): void {
    const process = this.machine.process({
      isRemote,
      before: (call, path) => {
        this.#hasChanged ||= !LOOKUPS.has(call);
        this.note(name, call, path);
      },
    });
    this.#actors.push({ name, process, steps: list(process.fs), wakesAt: 0 });
  }

  /** Somebody changes something by other means than a system call. */
  acts(who: string, what: string): void {
    this.#hasChanged = true;
    this.note(who, what);
  }

  /** A publication of this unit begins: what is there until its end is not complete. */
  begins(unit: string): void {
    this.#publishes(unit, 1);
  }

  /** A publication of this file begins, which is written in place. */
  writes(file: string): void {
    this.#written.add(this.machine.fold(file));
    this.begins(file);
  }

  ends(unit: string): void {
    this.#written.delete(this.machine.fold(unit));
    this.#publishes(unit, -1);
  }

  /** In any spelling of the unit. */
  #publishes(unit: string, by: 1 | -1): void {
    this.#hasChanged = true;
    const folded = this.machine.fold(unit);
    this.#partial.set(folded, (this.#partial.get(folded) ?? 0) + by);
  }

  readonly isWritten = (unit: string): boolean =>
    // A backup may have taken the file that is being written: it has its name and a suffix.
    [...this.#written].some((path) => this.machine.fold(unit).startsWith(path));

  readonly isPartial = (unit: string): boolean => (this.#partial.get(this.machine.fold(unit)) ?? 0) > 0;

  /** Resolves after this time, ms. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => time.setTimeout(() => resolve(), ms));
  }

  /** Goes on until no actor has anything left to do, and then for so long, ms. */
  async run(restMs: number): Promise<void> {
    while (this.#actors.length > 0) await this.#turn(Infinity);
    this.quietSince = this.now;
    await this.rest(restMs);
  }

  /** Time in which nobody but the library does anything, ms. */
  async rest(ms: number): Promise<void> {
    const end = this.now + ms;
    while (this.now < end) await this.#turn(end);
    await this.#turn(end);
  }

  /** What the library has begun and nobody waits for comes to an end, because all schedules share its state. */
  async drain(): Promise<void> {
    for (let turns = 0; turns < 1_000 && time.leftovers() > 0; turns += 1) await this.#turn(Infinity);
  }

  /** The library does its work until this promise settles. @param what for the message if it never does. */
  async through<T>(promise: Promise<T>, what: string): Promise<T> {
    const state = { isSettled: false };
    const settle = (): void => void (state.isSettled = true);
    promise.then(settle, settle);
    const end = this.now + LONGEST_CALL_MS;
    await settled();
    while (!state.isSettled) {
      if (this.now >= end) throw new Violation(5, `${what} never resolves`);
      await this.#turn(end);
    }
    return promise;
  }

  async #turn(end: number): Promise<void> {
    if ((this.turns += 1) > MAX_TURNS) throw new Violation(9, `more than ${MAX_TURNS} turns`);
    await settled();
    for (const each of this.eachTurn) each();
    let didWork = await settledAfterEach(time.runTimers());
    this.#actBetween();
    if (this.parcel?.isReady) {
      didWork = true;
      // It may be slow.
      if (this.choices.choose(2, 0.3) === 0) this.#read();
    }
    if (this.library.deliver()) {
      didWork = true;
      this.note('library', 'receives events');
      await settled();
      this.#actBetween();
    }
    const { pending } = this.machine;
    const ready = pending.length > 0 ? pending.filter(({ isStuck }) => !isStuck) : pending;
    const answered = ready[ready.length > 0 ? this.choices.choose(ready.length, 0.5) : 0];
    if (answered) {
      this.note('kernel', `answers ${answered.call} ${answered.path}`);
      // If it hangs, the others may be answered.
      answered.answer();
      didWork = true;
      await settled();
    }
    didWork = (await settledAfterEach(time.runImmediates())) || didWork;
    if (!didWork) this.#idle(end);
  }

  /** Nothing is ready in the library. */
  #idle(end: number): void {
    const ready = this.#actors.filter(({ wakesAt }) => wakesAt <= this.now);
    const waiting = [time.nextTimerAt(), this.library.nextEventsAt, end];
    const next = Math.min(...waiting, ...this.#actors.map(({ wakesAt }) => wakesAt));
    if (ready.length === 0) {
      if (next > this.now && next < Infinity) time.advance(next - this.now);
      return;
    }
    this.#step(this.choices.oneOf(ready));
  }

  #actBetween(): void {
    this.#act(this.between);
  }

  #beforeCall(call: string, path: string): void {
    this.#act(this.#density);
    this.calls.push(`${call} ${path}`);
    if (this.parcel?.isReady && this.choices.choose(2, 0.1) === 1) this.#read();
    this.note('library', call, path);
    if (this.#faults === 0 || this.#actors.length === 0 || call === 'close') return;
    if (this.choices.choose(2, this.#faults) === 0) return;
    const code = this.choices.oneOf(FAULTS);
    this.note('kernel', `fails: ${code}`);
    throw new Errno(code);
  }

  #read(): void {
    this.note('thread', 'reads events');
    this.parcel?.read();
  }

  /** Lets others act, or time pass. */
  #act(chance: number): void {
    // Once somebody acts, the moment may be long.
    for (let more = chance; ; more = this.#persistence) {
      if (this.#actors.length === 0) return;
      const { now } = this;
      let count = 0;
      for (const { wakesAt } of this.#actors) if (wakesAt <= now) count += 1;
      const choice = this.choices.choose(2 + count * STEPS_A_PASS, more);
      if (choice === 0) return;
      const ready = this.#actors.filter(({ wakesAt }) => wakesAt <= now);
      const actor = choice > count * STEPS_A_PASS ? undefined : ready[(choice - 1) % count];
      if (actor) this.#step(actor);
      else {
        time.advance(this.choices.oneOf([1, 5, 12]));
        this.note('time', 'passes');
        return;
      }
    }
  }

  #step(actor: Actor): void {
    const { done, value = 0 } = actor.steps.next() as IteratorResult<number | undefined, undefined>;
    if (done) this.#actors = this.#actors.filter((each) => each !== actor);
    else actor.wakesAt = this.now + value;
    if (!this.#hasChanged) return;
    this.#hasChanged = false;
    this.changedAt = this.now;
    for (const after of this.afterStep) after();
  }
}
