/** What a program does with its watcher while others change the target. */
import {
  ClosedError,
  readVolume,
  TargetError,
  waitFor,
  type ResilientWatcherOptions,
  type Snapshot,
} from '../../../src/index.js';
import { write } from '../actors/calls.js';
import { enteredKeys, isWithout } from '../entered.js';
import { NOTHING, type History } from '../history.js';
import type { Report } from '../invariants.js';
import { byUnit } from '../views.js';
import { Violation, type World } from '../world.js';
import { LISTENERS } from './listeners.js';
import { textOf, type Watched, type Watching } from './watching.js';

export interface Program {
  readonly world: World;
  readonly watching: Watching;
  readonly watched: Watched;
  readonly history: History;
  /** Whether calls of the library may fail. */
  readonly isFaulty: boolean;
}

/** Does something now and then, until the schedule ends. */
export type Habit = (program: Program) => Promise<void>;

const PAUSES_MS = [5, 0, 40, 400];

/** 8: what a call finds is not older than the call. */
export const HABITS: Readonly<Record<string, Habit>> = {
  ...LISTENERS,

  /** Only listens. */
  listens: () => Promise.resolve(),

  async checks({ world, watching, history, isFaulty }) {
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    const since = world.now;
    await watching.watcher.check();
    world.note('program', `has checked since ${since}`);
    if (isFaulty) return;
    const told = watching.reports.at(-1);
    for (const unit of volumesIn(history)) assertFresh(unit, told, history, since, 'check()');
  },

  async snapshots({ world, watching, watched, history, isFaulty }) {
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    const since = world.now;
    const snapshot = await watching.watcher.snapshot().catch(() => undefined);
    if (!snapshot || isFaulty) return;
    const report = { at: world.now, units: unitsOf(snapshot, watched) };
    world.note('program', `has a snapshot: ${[...report.units.values()].join('| ')}`);
    assertExisted(report, history, watched, since, 'snapshot()');
    for (const unit of allVolumesIn(history)) assertFresh(unit, report, history, since, 'snapshot()');
  },

  async reads({ world, watched, history, isFaulty }) {
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    const since = world.now;
    if (typeof watched.path !== 'string' || watched.options.recursive !== undefined) return;
    const fs = world.library.fs as unknown as ResilientWatcherOptions['fs'];
    const snapshot = await readVolume(watched.path, { fs }).catch(() => undefined);
    if (!snapshot || isFaulty) return;
    const report = { at: world.now, units: unitsOf(snapshot, watched) };
    world.note('program', `has read: ${[...report.units.values()].join('| ')}`);
    assertExisted(report, history, watched, since, 'readVolume()');
    for (const unit of volumesIn(history)) assertFresh(unit, report, history, since, 'readVolume()');
  },

  async waits({ world, watched, history, isFaulty }) {
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    const since = world.now;
    const { library, random } = world;
    const fs = library.fs as unknown as ResilientWatcherOptions['fs'];
    const options = { ...watched.options, fs, random, timeoutMs: 2_000 };
    const found = await waitFor(watched.path, options).catch((error: unknown) => error);
    if (found instanceof TargetError) return;
    if (found instanceof Error) throw found;
    const snapshot = found as Snapshot;
    if (snapshot.kind === 'missing') throw new Violation(5, 'waitFor() resolves to what is missing');
    if (isFaulty) return;
    const report = { at: world.now, units: unitsOf(snapshot, watched) };
    for (const unit of volumesIn(history)) assertFresh(unit, report, history, since, 'waitFor()');
  },

  /** A second start changes nothing. */
  async startsAgain({ world, watching }) {
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    const told = watching.watcher.current;
    const started = watching.watcher.start();
    if (watching.watcher.current !== told) throw new Violation(4, 'start() reports again');
    await started;
  },

  /** A closed watcher does not start again. The program creates another one. */
  async restarts({ world, watching }) {
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    const closed = watching.close();
    const refused = await watching.watcher.start().catch((error: unknown) => error);
    if (!(refused instanceof ClosedError)) throw new Violation(7, 'a closed watcher starts');
    await closed;
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    await watching.restart();
  },

  /** A file is added to a group, and removed again. */
  async regroups({ world, watching, watched, isFaulty }) {
    if (typeof watched.path === 'string') return;
    const path = '/extra';
    Array.from(write(world.machine.process().fs, path, 'one more'));
    watching.extra = path;
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    for (const call of ['add', 'remove', 'add', 'remove'] as const) {
      world.note('program', `${call}s a file`);
      await watching.watcher[call](path);
      const isTold = watching.watcher.current?.files.has(path) === true;
      if (isTold !== (call === 'add') && !isFaulty)
        throw new Violation(5, `${call}() resolves before it is told`);
      await world.sleep(world.choices.oneOf(PAUSES_MS));
    }
  },
};

function unitsOf(snapshot: Snapshot, { unitOf }: Watched): Map<string, string> {
  return byUnit(textOf(snapshot), unitOf);
}

/** Only where one volume is all that is watched: other sets wait for each other, and plain files until they settle. */
function volumesIn(history: History): string[] {
  const units = [...history.units];
  return units.length === 1 ? units.filter((unit) => unit === '/m/v') : [];
}

/** A snapshot waits for nothing. */
function allVolumesIn(history: History): string[] {
  return [...history.units].filter((unit) => unit === '/m/v' || unit === '/m/w');
}

/** 1: what was found existed as a whole, and was there after the call. */
function assertExisted(
  report: Report,
  history: History,
  { isOfLast = false }: Watched,
  since: number,
  call: string,
): void {
  const contentOf = (text: string): string => (isOfLast ? text.slice(text.indexOf('=')) : text);
  for (const [unit, text] of report.units) {
    const entered = enteredKeys(history, unit, since, report);
    const all = (isOfLast ? [...history.units] : [unit]).flatMap((each) => history.of(each));
    const states = all.filter(({ to }) => to >= since).map((state) => contentOf(state.text));
    if (states.some((each) => each === contentOf(text) || isWithout(text, each, entered))) continue;
    throw new Violation(1, `${unit}: ${call} finds "${text}", which never existed since ${since}`);
  }
}

/** Whether a volume is as it was at some time since then. One that is not there, or being published, may be told later. */
function assertFresh(
  unit: string,
  told: Report | undefined,
  history: History,
  since: number,
  call: string,
): void {
  const current = history.of(unit).filter(({ to }) => to >= since);
  if (current.some(({ text, isPublished }) => text === NOTHING || !isPublished)) return;
  const text = told?.units.get(unit) ?? NOTHING;
  const entered = told ? enteredKeys(history, unit, since, told) : [];
  if (current.some((state) => state.text === text || isWithout(text, state.text, entered))) return;
  throw new Violation(8, `${unit}: after ${call}, there is "${text}", which is older`);
}
