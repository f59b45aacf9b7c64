/**
 * A backend that fails at any moment: while it is subscribed, while its directories are set, at once after that or later; twice,
 * for one directory only, and again after each delay. Or it hangs: it never answers when directories are set, and perhaps not when
 * it is closed. In between, it may work for a while.
 */
import { type ResilientWatcherOptions } from '../../../src/index.js';
import type {
  HintSink,
  WatchBackend,
  WatchedDirectory,
  WatchSubscription,
} from '../../../src/core/ports/watch-backend.js';
import { nodeFsBackend } from '../../../src/watch/backends/node-fs.js';
import { historyOf } from '../history.js';
import { checkAllIsTold, checkReports } from '../invariants.js';
import { KINDS } from '../kinds.js';
import { Violation, type World } from '../world.js';
import { Watching } from './watching.js';

const FATES = [
  'works',
  'throws',
  'rejects',
  'is down before it is subscribed',
  'is down when it is subscribed',
  'is down while directories are set',
  'refuses directories',
  'refuses one directory',
  'hangs',
  'hangs for one directory',
  'is down at the first hint',
  'is down later',
] as const;

const [FIRST_DELAY_MS, LONGEST_DELAY_MS] = [100, 1_600];
const PAUSES_MS = [0, 1, 20, 300];

/** How long one works that goes down later, ms. */
const LIVES_MS = [0, 1, 300, 2_500];

/** The longest delay, a poll, and what settles after them, ms. */
const REST_MS = 12_000;

/** After this time, one that hangs has failed, ms. */
const HANG_MS = 10_000;

/** How often the target is polled, ms. */
const POLL_MS = 1_000;

/** What is done in a turn or two is done at once, ms. */
const AT_ONCE_MS = 20;

class FrailBackend implements WatchBackend {
  readonly name = 'frail';
  readonly needsKernelEvents = true;
  /** The last subscription works, so that what happens is heard. */
  isListening = false;
  /** Whether all that come at the end hang. */
  readonly isHopeless: boolean;
  /** Whether one that hangs does not close either. */
  readonly isStuck: boolean;
  readonly #world: World;
  readonly #inner: WatchBackend;
  readonly #fates: (typeof FATES)[number][];
  readonly #isSynchronous: boolean;

  constructor(world: World) {
    const { choices, library } = world;
    this.#world = world;
    this.#inner = nodeFsBackend(library.fs.watch);
    this.#fates = Array.from({ length: choices.choose(6, 0.95) }, () => choices.oneOf(FATES));
    this.#isSynchronous = choices.choose(2) === 0;
    this.isHopeless = choices.choose(8) === 1;
    this.isStuck = choices.choose(2) === 1;
  }

  /** How long its subscriptions hang at most, ms. */
  get hangsMs(): number {
    return this.#fates.filter((fate) => fate.startsWith('hangs')).length * (HANG_MS + 2 * LONGEST_DELAY_MS);
  }

  subscribe(
    sink: HintSink,
    options: { readonly persistent: boolean },
  ): ReturnType<WatchBackend['subscribe']> {
    const fate = this.#fates.shift() ?? (this.isHopeless ? 'hangs' : 'works');
    const { choices } = this.#world;
    const [pauseMs, lifeMs] = [choices.oneOf(PAUSES_MS), choices.oneOf(LIVES_MS)];
    this.#world.note('backend', fate);
    if (fate === 'throws') throw new Error(fate);
    const subscription = (): WatchSubscription => this.#subscription(sink, options, fate, lifeMs);
    if (fate === 'works' && this.#isSynchronous) return subscription();
    return this.#world.sleep(pauseMs).then(() => {
      if (fate === 'rejects') throw new Error(fate);
      return subscription();
    });
  }

  #subscription(
    sink: HintSink,
    options: { readonly persistent: boolean },
    fate: (typeof FATES)[number],
    lifeMs: number,
  ): WatchSubscription {
    this.isListening = false;
    let isDown = false;
    let isClosed = false;
    let isHung = false;
    let sets = 0;
    const down = (): void => {
      isDown = true;
      if (!isClosed) this.isListening = false;
      this.#world.note('backend', 'is down');
      sink.down(new Error(fate));
      // Once more changes nothing.
      sink.down(new Error(`${fate}, again`));
    };
    const later = (): void => void this.#world.sleep(lifeMs).then(down);
    const inner = this.#inner.subscribe(
      {
        hint: (hint) => {
          if (isDown) return;
          if (fate === 'is down at the first hint') down();
          else sink.hint(hint);
        },
        down: (error) => sink.down(error),
      },
      options,
    ) as WatchSubscription;
    if (fate === 'is down before it is subscribed') down();
    else if (fate === 'is down when it is subscribed') queueMicrotask(down);
    return {
      setDirectories: (directories: readonly WatchedDirectory[]) => {
        sets += 1;
        if (fate === 'is down while directories are set' && sets === 1) down();
        const isOne = fate === 'refuses one directory' && directories.length > 1 && sets > 1;
        if (fate === 'refuses directories' || isOne) {
          isDown = true;
          this.isListening = false;
          throw Object.assign(new Error(`EMFILE: ${fate}`), { code: 'EMFILE' });
        }
        if (fate === 'hangs' || (fate === 'hangs for one directory' && directories.length > 1 && sets > 1)) {
          isHung = true;
          void this.#world.sleep(HANG_MS + AT_ONCE_MS).then(() => (this.isListening &&= isClosed));
          const others = fate === 'hangs' ? [] : directories.slice(0, -1);
          return Promise.resolve(inner.setDirectories(others)).then(
            () => new Promise<never>(() => undefined),
          );
        }
        if (fate === 'is down later' && sets === 1) later();
        if (!isDown) this.isListening = true;
        return inner.setDirectories(directories);
      },
      close: () => {
        isClosed = true;
        const closed = inner.close();
        return isHung && this.isStuck ? new Promise<never>(() => undefined) : closed;
      },
    };
  }
}

export async function frail(world: World): Promise<void> {
  const { choices } = world;
  const scene = KINDS[choices.oneOf(['volume', 'file', 'directory', 'tree', 'group', 'links'])]?.(world);
  if (!scene) throw new Error('There is no such kind');
  const history = historyOf(world, scene.see, scene.unitOf);
  const backend = new FrailBackend(world);
  const options: ResilientWatcherOptions = {
    ...scene.options,
    backend,
    resyncIntervalMs: world.isLossy ? 5_000 : 0,
    restartDelayMs: FIRST_DELAY_MS,
    maxRestartDelayMs: LONGEST_DELAY_MS,
  };
  const watching = new Watching(world, { ...scene, options });
  const { watcher } = watching;
  const delays: number[] = [];
  watcher.on('restart', ({ delayMs, attempt }) => {
    const last = attempt === 1 ? undefined : delays.at(-1);
    const isShorter = last !== undefined && delayMs < Math.min(last, LONGEST_DELAY_MS / 2);
    delays.push(delayMs);
    if (isShorter) told ??= new Violation(9, `after ${last} ms, it tries again after ${delayMs} ms`);
  });
  let told: Violation | undefined;
  world.eachTurn.push(() => {
    if (watcher.state === 'watching' && !backend.isListening)
      told ??= new Violation(6, `at ${world.now}, the status says "watching", but nothing is heard`);
  });
  try {
    const { hangsMs } = backend;
    const started = world.sleep(choices.oneOf([0, 10, 400])).then(() => watching.start());
    await world.run(REST_MS + hangsMs);
    await world.through(started, 'start()');
    watching.checkStatus();
    watching.check();
    if (told) throw told;
    const isHeard = watcher.state === 'watching';
    if (!isHeard && !backend.isHopeless) throw new Violation(6, `at the end it is ${watcher.state}`);
    if (!world.canFail || scene.isTree !== true)
      checkReports(history, watching.reports, watching.since, {
        settleMs: 50,
        missingGraceMs: 500,
        areClocksFar: world.areClocksFar,
        blindMs: HANG_MS + POLL_MS,
      });
    checkAllIsTold(history, watching.reports.at(-1));
  } finally {
    world.eachTurn.length = 0;
    const { now } = world;
    await world.through(watching.close(), 'close()');
    // It may just be subscribed.
    const heldMs = Math.max(...PAUSES_MS) + (backend.isStuck ? HANG_MS : 0);
    if (world.now - now > heldMs + AT_ONCE_MS)
      told ??= new Violation(7, `close() takes ${world.now - now} ms`);
    await world.rest(3_000);
  }
  if (told) throw told;
  const { watches } = world.library.leftovers();
  if (watches > 0) throw new Violation(7, `after close(), ${watches} watches are left`);
}
