/** Runs one schedule, and says which invariant it violates. */
import { aliases } from './aliases.js';
import { behind } from './behind.js';
import { BUSY_KINDS } from './busy.js';
import { Choices } from './choices.js';
import { clocks } from './clocks.js';
import { cover } from './consumers/covering.js';
import { checkIsTold } from './consumers/following.js';
import { frail } from './consumers/frail.js';
import { HABITS } from './consumers/habits.js';
import { hang } from './consumers/hanging.js';
import { leave } from './consumers/leaving.js';
import { many } from './consumers/many.js';
import { MEDIA } from './consumers/media.js';
import { neighbors } from './consumers/neighbors.js';
import { regroup } from './consumers/regrouping.js';
import { together } from './consumers/together.js';
import { Watching } from './consumers/watching.js';
import { Writing } from './consumers/writing.js';
import { denied } from './denied.js';
import { deniedAncestors } from './denied-ancestors.js';
import { deniedFile } from './denied-file.js';
import { drawn } from './drawn.js';
import { historyOf } from './history.js';
import { checkInTime, checkReports, checkStart } from './invariants.js';
import { followed } from './followed.js';
import { emptied, KINDS, SETTLE_MS, type Kind } from './kinds.js';
import { linked } from './linked.js';
import { LAPTOPS } from './laptops.js';
import { LEFT_KINDS } from './left.js';
import { POLLED } from './polled.js';
import { nextRealTurn } from './globals.js';
import { numbered } from './numbered.js';
import { parcel, parcels, replacedParcel } from './parcel.js';
import { Readability } from './readability.js';
import { remote } from './remote.js';
import { SCENES } from './scenes.js';
import { subdirectories } from './subdirectories.js';
import { leftovers, pendingTimers } from './time.js';
import { Violation, World, type Entry } from './world.js';

/** A schedule: a kind, and a seed or a list of decisions. */
export interface Schedule {
  readonly kind: string;
  readonly seed: number;
  readonly given?: readonly number[] | undefined;
}

export interface Outcome {
  readonly violation: Violation | undefined;
  readonly choices: Choices;
  readonly trace: readonly Entry[];
}

/** If both listings of a look have missed an entry within a tick of the clock, nothing shows that it is there. */
const MISSES = 2;

/** After this time without any change, everything that is not a resync has happened, ms. */
const REST_MS = 1_500;

/** The same with two resyncs, and with the delays of a backend that failed. */
const LOSSY_REST_MS = 12_000;

/** What is watched in one way or another. */
const WATCHED: Readonly<Record<string, Kind>> = {
  ...KINDS,
  ...SCENES,
  ...POLLED,
  ...BUSY_KINDS,
  ...LEFT_KINDS,
  denied,
  'denied-ancestors': deniedAncestors,
  'denied-file': deniedFile,
  drawn,
  emptied,
  followed,
  linked,
  behind,
  aliases,
  clocks,
  numbered,
  remote,
  subdirectories,
  parcel,
  'replaced-parcel': replacedParcel,
};

/** Programs with ways of their own. */
const PROGRAMS: Readonly<Record<string, (world: World) => Promise<void>>> = {
  cover,
  frail,
  hang,
  leave,
  neighbors,
  parcels,
  regroup,
  together,
};

/** The kinds whose schedules are small. */
export const ALL_KINDS = Object.keys({ ...WATCHED, ...MEDIA, ...PROGRAMS });

export async function runSchedule({ kind, seed, given }: Schedule, isTraced = false): Promise<Outcome> {
  // In a callback of the event loop, nextTick comes before the promises that settled() waits for.
  await Promise.resolve();
  const choices = new Choices(seed, given);
  const world = new World(choices, seed, isTraced, kind in MEDIA);
  let violation: Violation | undefined;
  try {
    await play(world, kind);
  } catch (error) {
    violation =
      error instanceof Violation ? error : new Violation(0, (error as Error).stack ?? String(error));
  }
  await world.drain();
  // Node.js drops what only weak references hold.
  await nextRealTurn();
  return { violation, choices, trace: world.trace ?? [] };
}

async function play(world: World, kind: string): Promise<void> {
  const { choices } = world;
  const program = kind === 'many' ? many : PROGRAMS[kind];
  if (program) return program(world);
  const medium = MEDIA[kind];
  if (medium) return new Writing(world, medium).run();
  const scene = (WATCHED[kind] ?? LAPTOPS[kind])?.(world);
  if (!scene) throw new Error(`There is no kind "${kind}"; there are ${Object.keys(WATCHED).join(', ')}`);
  const history = historyOf(world, scene.see, scene.unitOf);
  const readability = scene.needs && new Readability(world, scene.needs);
  const isFaulty = world.canFail || scene.needs !== undefined;
  const needsResync = world.isLossy || scene.isSilent === true;
  const isDeafened = scene.isDeafened === true;
  const { settleMs = SETTLE_MS, groupSettleMs = settleMs } = scene.options;
  const missingGraceMs = choices.oneOf([500, 500, 0]);
  const options = { ...scene.options, missingGraceMs, ...(needsResync && { resyncIntervalMs: 5_000 }) };
  const watching = new Watching(world, { ...scene, options });
  world.afterStep.push(() => watching.checkStatus());
  const habit = choices.oneOf(Object.values(scene.habits ?? HABITS));
  let failure: unknown;
  let late: Violation | undefined;
  try {
    const started = world.sleep(choices.oneOf([0, 0, 10, 45, 400])).then(() => watching.start());
    const program = { world, watching, watched: scene, history, isFaulty };
    const done = started.then(() => habit(program)).catch((error: unknown) => (failure = error));
    await world.run(needsResync || isDeafened || readability ? LOSSY_REST_MS : REST_MS);
    await world.through(started, 'start()');
    await world.through(done, 'a call of the program');
    if (failure !== undefined) throw failure as Error;
    const { frozenIn } = world.library;
    if (frozenIn !== undefined) throw new Violation(5, `the process waits for ever in ${frozenIn}`);
    watching.checkStatus();
    watching.check();
    checkKeepsAlive(world, options.persistent ?? true);
    // What is polled may be found by either.
    if (!needsResync && options.backend !== 'poll')
      watching.checkCalm(readability !== undefined, isDeafened || readability?.isDeaf);
    if (!world.isLossy) {
      const isTree = scene.options.recursive !== undefined;
      const since = isTree ? (watching.reports[0]?.at ?? Infinity) : watching.since;
      readability?.check(watching.told, since, missingGraceMs, options.resyncIntervalMs ?? 5_000, isTree);
      if (options.resyncIntervalMs !== 0) readability?.checkNamed(watching.told);
    }
    if (scene.isOfLast !== true && (!isFaulty || scene.isTree !== true))
      checkReports(history, watching.reports, watching.since, {
        settleMs: Math.min(settleMs, groupSettleMs),
        // Without a quiet period, what was empty while it was read is told.
        missingGraceMs: settleMs === 0 ? 0 : missingGraceMs,
        areClocksFar: world.areClocksFar,
        // A file that replaces one with its number and its time of creation seems to be written in place.
        mayMiss: watching.missed >= MISSES || world.isSetBack,
      });
    const [first] = watching.reports;
    if (scene.isLogged && first && !world.isLossy) checkStart(first, watching.since);
    const quietSince = Math.max(world.quietSince, watching.since);
    const isHeard = !readability?.isDenied && !readability?.isDeaf && !watching.isDeafAfter(quietSince);
    if (!needsResync && isHeard) {
      // A group waits for a plain file that the program adds to it meanwhile.
      const heldMs = (scene.heldMs ?? settleMs) + (watching.extra === undefined ? 0 : settleMs);
      const pollMs = options.pollIntervalMs ?? scene.lateMs ?? 0;
      const areTogether = scene.areTogether ?? scene.isTree !== true;
      const patience = { settleMs: heldMs, missingGraceMs, pollMs, areTogether };
      checkInTime(history, watching.reports, quietSince, patience);
    }
    // What can no longer be read stays as it was told; without a resync, also what no event tells.
    const isUnheard = readability?.isDeafNow === true && options.resyncIntervalMs === 0;
    if (!readability?.isDenied && !isUnheard) await checkIsTold(world, history, watching);
  } finally {
    // Also after a failure, because the library has state that all watchers of a process share.
    await world.through(watching.close(), 'close()');
    const timers = pendingTimers();
    if (timers > 0) late = new Violation(7, `after close(), ${timers} timers are left`);
    await world.rest(10_000);
  }
  watching.check();
  if (late) throw late;
  const left = { timers: leftovers(), threads: world.parcel?.threads ?? 0, ...world.library.leftovers() };
  for (const [what, count] of Object.entries(left)) {
    if (count > 0) throw new Violation(7, `after close(), ${count} ${what} are left`);
  }
}

/** 7: an open watcher keeps the process alive, unless it is not `persistent`. */
function checkKeepsAlive(world: World, isPersistent: boolean): void {
  const count = pendingTimers() + world.library.persistentWatches + (world.parcel?.callbacks ?? 0);
  if (count > 0 === isPersistent) return;
  throw new Violation(7, `${count} timers and watches keep the process alive (persistent: ${isPersistent})`);
}
