/** What a program does with its watcher while others change the target. */
import { readVolume, type ResilientWatcherOptions } from '../../../src/index.js';
import { NOTHING, type History, type State } from '../history.js';
import type { Report } from '../invariants.js';
import { byUnit } from '../views.js';
import { Violation, type World } from '../world.js';
import type { Watched, Watching } from './watching.js';

export interface Program {
  readonly world: World;
  readonly watching: Watching;
  readonly watched: Watched;
  readonly history: History;
  /** Whether calls of the library may fail. */
  readonly isFaulty: boolean;
}

/** Does something now and then, until the schedule ends. */
type Habit = (program: Program) => Promise<void>;

const PAUSES_MS = [5, 0, 40, 400];

/** 8: what a call finds is not older than the call. */
export const HABITS: Readonly<Record<string, Habit>> = {
  /** Only listens. */
  listens: () => Promise.resolve(),

  async checks({ world, watching, history, isFaulty }) {
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    const since = world.now;
    await watching.watcher.check();
    world.note('program', `has checked since ${since}`);
    if (isFaulty) return;
    const told = watching.reports.at(-1);
    for (const unit of volumesIn(history)) assertFresh(unit, told, history.of(unit), since, 'check()');
  },

  async snapshots({ world, watching, watched, history, isFaulty }) {
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    const since = world.now;
    const snapshot = await watching.watcher.snapshot().catch(() => undefined);
    if (!snapshot || isFaulty) return;
    const files = [...snapshot.files].map(([key, { content }]) => [key, String(content)] as const);
    const report = { at: world.now, units: byUnit(new Map(files), watched.unitOf) };
    world.note('program', `has a snapshot: ${[...report.units.values()].join('| ')}`);
    assertExisted(report, history, since, 'snapshot()');
    for (const unit of volumesIn(history)) assertFresh(unit, report, history.of(unit), since, 'snapshot()');
  },

  async reads({ world, watched, history, isFaulty }) {
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    const since = world.now;
    if (typeof watched.path !== 'string' || watched.options.recursive !== undefined) return;
    const fs = world.library.fs as unknown as ResilientWatcherOptions['fs'];
    const snapshot = await readVolume(watched.path, { fs }).catch(() => undefined);
    if (!snapshot || isFaulty) return;
    const files = [...snapshot.files].map(([key, { content }]) => [key, String(content)] as const);
    const report = { at: world.now, units: byUnit(new Map(files), watched.unitOf) };
    world.note('program', `has read: ${[...report.units.values()].join('| ')}`);
    assertExisted(report, history, since, 'readVolume()');
    for (const unit of volumesIn(history)) assertFresh(unit, report, history.of(unit), since, 'readVolume()');
  },
};

/** Only where one volume is all that is watched: other sets wait for each other, and plain files until they settle. */
function volumesIn(history: History): string[] {
  const units = [...history.units];
  return units.length === 1 ? units.filter((unit) => unit === '/m/v') : [];
}

/** 1: what was found existed as a whole, and was there after the call. */
function assertExisted({ units }: Report, history: History, since: number, call: string): void {
  for (const [unit, text] of units) {
    if (history.of(unit).some((state) => state.to >= since && state.text === text)) continue;
    throw new Violation(1, `${unit}: ${call} finds "${text}", which never existed since ${since}`);
  }
}

/** Whether a volume is as it was at some time since then. One that is not there, or being published, may be told later. */
function assertFresh(
  unit: string,
  told: Report | undefined,
  states: readonly State[],
  since: number,
  call: string,
): void {
  const current = states.filter(({ to }) => to >= since);
  if (current.some(({ text, isPublished }) => text === NOTHING || !isPublished)) return;
  const text = told?.units.get(unit) ?? NOTHING;
  if (current.some((state) => state.text === text)) return;
  throw new Violation(8, `${unit}: after ${call}, there is "${text}", which is older`);
}
