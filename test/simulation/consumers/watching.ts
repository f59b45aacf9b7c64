/** A program that watches a target. */
import {
  ListenerError,
  ResilientWatcher,
  TargetError,
  type Change,
  type ResilientWatcherOptions,
} from '../../../src/index.js';
import type { Report } from '../invariants.js';
import type { Told } from '../readability.js';
import { byUnit, type UnitOf } from '../views.js';
import { Violation, type World } from '../world.js';

const ROUNDING_MS = 0.001;

/** Longer than a call of the library takes, ms: a resync may come before the event. */
const JUST_NOW_MS = 20;

const COUNTED = ['changes', 'resyncs', 'restarts'] as const;
const noCounts = (): Record<(typeof COUNTED)[number], number> => ({ changes: 0, resyncs: 0, restarts: 0 });

/** What is watched. */
export interface Watched {
  readonly path: string | readonly string[];
  readonly options: ResilientWatcherOptions;
  readonly unitOf: UnitOf;
  /** Whether a part of it may be unreadable while the rest is reported. */
  readonly isTree?: boolean;
  /** Whether only what is told last has the right keys: on the way, a file has the key by which it was found first. */
  readonly isOfLast?: boolean;
}

export class Watching {
  watcher: ResilientWatcher;
  /** Those of the current watcher. */
  reports: Report[] = [];
  /** Its events. */
  told: Told[] = [];
  /** Ms since the schedule began. */
  since = 0;
  /** Whether listeners of the program fail. */
  hasFailingListener = false;
  /** A file that the program adds to a group and removes again. */
  extra: string | undefined;
  readonly #world: World;
  readonly watched: Watched;
  readonly #closed = new WeakSet<ResilientWatcher>();
  #last: Change | undefined;
  /** How many listings of its process had missed something when it reported first. */
  missed = 0;
  #isUnreadable = false;
  #isPolled = false;
  /** How many changes only a resync has found. */
  #resyncs = 0;
  /** What the current watcher has told so far, by the names in its status. */
  #counts = noCounts();
  #violation: Violation | undefined;

  constructor(world: World, watched: Watched) {
    this.#world = world;
    this.watched = watched;
    this.watcher = this.#create();
  }

  #create(signal?: AbortSignal): ResilientWatcher {
    const fs = this.#world.library.fs as unknown as ResilientWatcherOptions['fs'];
    const { path, options } = this.watched;
    const watcher = new ResilientWatcher(path, { ...options, fs, random: this.#world.random, signal });
    watcher.on('change', (change) => this.#received(watcher, change));
    for (const name of ['readable', 'degraded', 'recovered', 'restart', 'warning'] as const) {
      watcher.on(name, () => this.#event(watcher, name));
    }
    watcher.on('restart', () => (this.#counts.restarts += 1));
    watcher.on('unreadable', ({ error }) =>
      this.#event(watcher, 'unreadable', error instanceof TargetError ? error.path : undefined),
    );
    watcher.on('error', (error) => {
      if (this.hasFailingListener && error instanceof ListenerError) return;
      this.#violated(new Violation(6, error.stack ?? error.message));
    });
    return watcher;
  }

  async start(): Promise<void> {
    this.since = this.#world.now;
    this.#world.note('program', 'starts');
    await this.watcher.start();
    this.#world.note('program', 'has started');
  }

  async close(): Promise<void> {
    await this.closes(() => this.watcher.close());
  }

  /** Closes the watcher in some way: it tells nothing afterwards. */
  closes<T>(close: () => T): T {
    this.#world.note('program', 'closes');
    const result = close();
    this.#closed.add(this.watcher);
    return result;
  }

  /** A new watcher of the same target. The old one is closed. */
  async restart(signal?: AbortSignal): Promise<void> {
    this.reports = [];
    this.told = [];
    this.#last = undefined;
    this.#counts = noCounts();
    this.watcher = this.#create(signal);
    await this.start();
  }

  #received(watcher: ResilientWatcher, change: Change): void {
    this.#event(watcher, `change (${change.cause})`);
    this.#counts.changes += 1;
    if (change.cause === 'resync') this.#counts.resyncs += 1;
    const { previous, current } = change;
    const [before, now] = [textOf(previous), textOf(current)];
    const wrong = summedUp(change);
    if (wrong) this.#violated(wrong);
    if (this.#last && !isSame(before, textOf(this.#last.current))) {
      this.#violated(new Violation(4, 'previous is not what was told last'));
    }
    if (this.#last && previous.kind === current.kind && isSame(before, now)) {
      this.#violated(new Violation(4, 'the same was told twice'));
    }
    this.#last = change;
    const isNew = this.#world.now - this.#world.changedAt < JUST_NOW_MS;
    if (change.cause === 'resync' && !isNew) this.#resyncs += 1;
    if (this.extra !== undefined) now.delete(this.extra);
    const units = byUnit(now, this.watched.unitOf);
    this.#world.note('program', `is told ${current.kind} ${[...units.values()].join('| ')}`);
    if (this.reports.length === 0) this.missed = this.#world.library.missed;
    this.reports.push({ at: this.#world.now, units });
  }

  #event(watcher: ResilientWatcher, name: string, path?: string): void {
    this.#world.note('program', name, path);
    this.told.push({ at: this.#world.now, name, path });
    this.#isUnreadable ||= name === 'unreadable';
    this.#isPolled ||= name === 'restart' || name === 'degraded';
    if (this.#closed.has(watcher)) this.#violated(new Violation(7, `${name} after close()`));
  }

  /** Whether its backend did not listen, or listened again, after this time, ms. */
  isDeafAfter(since: number): boolean {
    return this.told.some(({ at, name }) => at >= since && (name === 'restart' || name === 'degraded'));
  }

  /**
   * 5, 6: if no event was lost and no call fails, no resync finds anything, and nothing is unreadable.
   * @param isDenied whether permissions were taken away.
   * @param isDeaf whether something could not be listened to for a while.
   */
  checkCalm(isDenied = false, isDeaf = false): void {
    // What is polled is found by the resync, too.
    if (this.#resyncs > 0 && !isDeaf && !(isDenied && this.#isPolled))
      throw new Violation(5, `${this.#resyncs} changes were found by a resync only`);
    if (this.#isPolled && !isDeaf && !isDenied) throw new Violation(6, 'degraded');
    if (this.#isUnreadable && !isDenied) throw new Violation(6, 'unreadable');
  }

  /** 4: what is counted is what was told. 14: what is measured does not move with the wall clock. */
  checkStatus(): void {
    const { sinceLastCheckMs: ms, ...status } = this.watcher.status();
    for (const name of COUNTED)
      if (status[name] !== this.#counts[name])
        this.#violated(new Violation(4, `status: ${status[name]} ${name}, and told: ${this.#counts[name]}`));
    // Monotonic times are large, and lose digits.
    if (ms === null || (ms >= 0 && ms <= this.#world.now - this.since + ROUNDING_MS)) return;
    this.#violated(
      new Violation(14, `the last check ended ${ms} ms ago, and ${this.#world.now} ms have passed`),
    );
  }

  /** @throws {Violation} the first one that a listener has seen. */
  check(): void {
    if (this.#violation) throw this.#violation;
  }

  /** A listener must not throw. */
  #violated(violation: Violation): void {
    this.#violation ??= violation;
  }
}

/** 4: `added`, `changed` and `removed`, applied to `previous`, give `current`. */
export function summedUp({ previous, current, added, changed, removed }: Change): Violation | undefined {
  const view = textOf(previous);
  const now = textOf(current);
  for (const key of removed) if (!view.delete(key)) return new Violation(4, `"${key}" was not there`);
  for (const key of [...added, ...changed]) {
    if (added.includes(key) === view.has(key)) return new Violation(4, `"${key}" is added or changed`);
    view.set(key, now.get(key) ?? '');
  }
  return isSame(view, now) ? undefined : new Violation(4, 'added, changed and removed do not sum up');
}

/** A file that could not be read is compared by its inode and times. */
export function textOf({ files }: Change['current']): Map<string, string> {
  return new Map([...files].map(([key, { content, digest }]) => [key, content ? String(content) : digest]));
}

export function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([key, text]) => other.get(key) === text);
}
