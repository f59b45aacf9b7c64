/**
 * The pods whose annotation has to change: one entry for each, with the newest change.
 *
 * | entry       | what happens                                    | next                                             |
 * |-------------|-------------------------------------------------|--------------------------------------------------|
 * | none        | an object of the pod changes                    | waiting: for its turn, or for its time           |
 * | waiting     | another change                                  | waiting, with the time of the newer change       |
 * | waiting     | `maxDelayMs` have passed                        | none: kubelet has delivered (`onBehind`)         |
 * | waiting     | it is due, and its scope and the rate allow it  | sent                                             |
 * | waiting     | another replica has set the annotation          | as if it had been patched here                   |
 * | sent        | the patch succeeds                              | none; repeating after an interruption            |
 * | sent        | another change                                  | waiting, once the patch has ended                |
 * | sent        | the pod is gone                                 | none                                             |
 * | sent        | this pod is refused                             | waiting, for a delay of its own                  |
 * | sent        | its namespace or everybody fails                | waiting, after the others of its namespace       |
 * | repeating   | 2, 10, 30 and 60 s after the change             | sent, after all entries that are waiting         |
 *
 * Namespaces take turns, so that none waits for another. What fails together is a scope: everybody, or one namespace
 * (patch-refusal.ts says which).
 *
 * | scope       | what happens                                    | next                                             |
 * |-------------|-------------------------------------------------|--------------------------------------------------|
 * | open        | a patch fails like all of the scope             | closed, for a delay that doubles                 |
 * | closed      | a patch that was sent before fails, too         | closed: the same failure                         |
 * | closed      | the delay has passed                            | closed; one patch of any pod tries it            |
 * | closed      | that patch fails                                | closed, for a longer delay                       |
 * | closed      | a patch succeeds; of everybody: is answered     | open                                             |
 * | unhealthy   | the delay has passed, and no patch is due       | a dry-run patch of any known pod tries it        |
 * | unhealthy   | the same, and no pod is known                   | open: no patch is left that could fail           |
 *
 * A scope is unhealthy after three failures in a row. The first refusal of a pod counts, too: if three pods are refused,
 * and none is patched, the next one will hardly succeed.
 *
 * kubelet's watch of an object has a new version long before a patch of ours makes it sync the pod, except after the API
 * server was away: each watch of kubelet returns on its own, up to 60 s after ours. So a patch is repeated if the object
 * changed within a minute after such an interruption. The value tells the repetitions apart (`<digest>`, `<digest>.1`, …),
 * because only a changed value is a change.
 */
import type { Scheduled } from 'resilient-watcher';
import { apiFailureOf, pauseAfter } from 'resilient-watcher/internal';

import { Agenda } from './agenda.js';
import { ApiBackoff } from './api-backoff.js';
import { Lane, namesIn, type Entry } from './patch-lane.js';
import type { QueueOptions } from './patch-queue-options.js';
import { PatchRate } from './patch-rate.js';
import { isDryRunRefused, whoseIs } from './patch-refusal.js';
import { PatchScope } from './patch-scope.js';

/** How long after a change each patch of it is due, ms. */
const DUE_MS = [0, 2_000, 10_000, 30_000, 60_000] as const;

/** How long after an interruption kubelet's watches may return, ms: client-go waits for up to 30 s, doubled by jitter. */
const LAG_MS = 60_000;

/** The time between two patches of one pod, ms: an object that is written all the time must not keep kubelet busy. */
const BETWEEN_PATCHES_MS = 1_000;

/** The API server answers a patch within some ms, so this allows hundreds of patches per second. */
const MOST_OF_NAMESPACE = 8;
/** More, because patches in some namespaces may wait for a webhook that does not answer. */
const MOST_IN_FLIGHT = 64;

/** A dry run is repeated after this time, ms, unless its answer says when. */
const ASK_AGAIN_MS = 30_000;

/** What is sent next: the patch of an entry, or a dry run that asks how a scope is. */
interface Turn {
  readonly lane: Lane;
  readonly pod: string;
  readonly entry?: Entry;
  readonly asks?: PatchScope;
}

export class PatchQueue {
  readonly #options: QueueOptions;
  /** By namespace. */
  readonly #lanes = new Map<string, Lane>();
  /** Those that may have something due; the one whose turn it is comes first. */
  readonly #ready = new Set<Lane>();
  /** Those that have failed, until they are open and healthy. */
  readonly #failing = new Set<PatchScope>();
  readonly #everybody: PatchScope;
  readonly #rate: PatchRate;
  readonly #agenda = new Agenda<Entry>();
  /** When pods with no entry were last patched, if that was less than `BETWEEN_PATCHES_MS` ago; oldest first. */
  readonly #patchedAt = new Map<string, number>();
  #interruptedAt = -Infinity;
  #timer: Scheduled | undefined;
  #isClosed = false;

  constructor(options: QueueOptions) {
    const { maxPatchesPerSecond, burst, clock, random } = options;
    this.#options = options;
    this.#everybody = new PatchScope(undefined, MOST_IN_FLIGHT, random);
    this.#rate = new PatchRate(maxPatchesPerSecond, burst, clock.monotonic());
  }

  /** The pods that wait for the first patch of a change. */
  get length(): number {
    let waiting = 0;
    for (const { entries } of this.#lanes.values())
      for (const { next } of entries.values()) if (next === 0) waiting += 1;
    return waiting;
  }

  /**
   * An object of these pods has changed.
   * @param changes when, monotonic ms, by pod.
   * @param delayMs how long the first patch of a pod waits.
   */
  add(changes: Iterable<readonly [pod: string, at: number]>, delayMs: (pod: string) => number): void {
    if (this.#isClosed) return;
    const now = this.#options.clock.monotonic();
    for (const [pod, changedAt] of changes) {
      const lane = this.#laneOf(pod);
      const known = lane.entries.get(pod);
      const dueAt = Math.max(
        changedAt + delayMs(pod),
        (this.#patchedAt.get(pod) ?? -Infinity) + BETWEEN_PATCHES_MS,
      );
      if (known) {
        known.changedAt = Math.max(known.changedAt, changedAt);
        known.changes += 1;
        // An entry that waits keeps its time: otherwise an object that changes all the time would never be delivered.
        if (known.next === 0) continue;
        known.next = 0;
        known.dueAt = dueAt;
        this.#place(known, now);
      } else {
        const entry = { pod, lane, changedAt, changes: 1, next: 0, dueAt, lookAt: Infinity, isSent: false };
        lane.entries.set(pod, entry);
        this.#place(entry, now);
      }
    }
    this.#work();
  }

  /** The pod has the value of this repetition, set here or by another replica. */
  annotated(pod: string, repetition: number): void {
    const entry = this.#entryOf(pod);
    if (!entry || entry.isSent || repetition < entry.next) return;
    this.#advance(entry, repetition);
    this.#place(entry, this.#options.clock.monotonic());
    this.#work();
  }

  /** The API server was away, for kubelet as well. */
  interrupted(): void {
    this.#interruptedAt = this.#options.clock.monotonic();
  }

  delete(pod: string): void {
    const entry = this.#entryOf(pod);
    if (entry) this.#remove(entry);
  }

  /** Nothing is sent from now on. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#lanes.clear();
    this.#ready.clear();
    this.#failing.clear();
    this.#agenda.clear();
  }

  readonly #work = (): void => {
    if (this.#isClosed) return;
    const now = this.#options.clock.monotonic();
    while (this.#agenda.next <= now) {
      const { at, item } = this.#agenda.take() as { at: number; item: Entry };
      // What was due earlier has replaced it.
      if (item.lookAt !== at) continue;
      item.lookAt = Infinity;
      this.#look(item, now);
    }
    let wakeAt = this.#agenda.next;
    for (let turn = this.#next(now); turn; turn = this.#next(now)) {
      const waitMs = this.#rate.take(now);
      if (waitMs > 0) {
        wakeAt = Math.min(wakeAt, now + waitMs);
        break;
      }
      void this.#send(turn, now);
    }
    wakeAt = Math.min(wakeAt, this.#nextAttempt(now));
    this.#timer?.cancel();
    this.#timer =
      wakeAt === Infinity
        ? undefined
        : this.#options.clock.schedule(this.#work, wakeAt - now, { ref: false });
  };

  #next(now: number): Turn | undefined {
    if (this.#isClosed || !this.#everybody.isFree(now)) return undefined;
    let repetition: Entry | undefined;
    for (const lane of this.#ready) {
      if (!lane.isDue) this.#ready.delete(lane);
      if (!lane.isFree(now)) continue;
      const [first] = lane.first;
      if (first) return { lane, pod: first.pod, entry: first };
      const [again] = lane.again;
      repetition ??= again;
    }
    if (repetition) return { lane: repetition.lane, pod: repetition.pod, entry: repetition };
    return this.#question(now);
  }

  /** The dry run of a pod, if there is something to ask. */
  #question(now: number): Turn | undefined {
    const { anyPod, onSuccess } = this.#options;
    for (const scope of this.#unhealthy()) {
      if (now < scope.askAt) continue;
      const pod = anyPod(scope.namespace);
      if (pod !== undefined) return { lane: this.#laneOf(pod), pod, asks: scope };
      scope.open();
      onSuccess(scope.what);
    }
    return undefined;
  }

  #unhealthy(): PatchScope[] {
    const { isHealthy } = this.#options;
    for (const scope of this.#failing)
      if (scope.closedUntil === -Infinity && isHealthy(scope.what)) this.#failing.delete(scope);
    return [...this.#failing].filter(({ what }) => !isHealthy(what));
  }

  /** When a scope that is closed or unhealthy is tried again. */
  #nextAttempt(now: number): number {
    const times = this.#unhealthy().map(({ askAt }) => askAt);
    if (this.#ready.size > 0) times.push(this.#everybody.closedUntil);
    for (const lane of this.#ready) if (this.#failing.has(lane)) times.push(lane.closedUntil);
    const later = times
      .map((time) => Math.max(time, this.#everybody.closedUntil))
      .filter((time) => time > now);
    return later.reduce((least, time) => Math.min(least, time), Infinity);
  }

  /** Puts the entry where its time says. */
  #place(entry: Entry, now: number): void {
    entry.lane.displace(entry);
    if (!entry.isSent) this.#look(entry, now);
  }

  #look(entry: Entry, now: number): void {
    const { pod, lane, changedAt, next, dueAt, isSent } = entry;
    if (isSent || lane.entries.get(pod) !== entry) return;
    const { maxDelayMs, onBehind } = this.#options;
    if (now - changedAt > maxDelayMs) {
      this.#remove(entry);
      if (next === 0) onBehind(pod, now - changedAt);
      return;
    }
    const tooLateAt = changedAt + maxDelayMs + 1;
    if (dueAt <= now) {
      lane.place(entry);
      this.#ready.add(lane);
    }
    const lookAt = dueAt <= now ? tooLateAt : Math.min(dueAt, tooLateAt);
    if (lookAt >= entry.lookAt) return;
    entry.lookAt = lookAt;
    this.#agenda.add(lookAt, entry);
  }

  async #send(turn: Turn, now: number): Promise<void> {
    const { lane, pod, entry, asks } = turn;
    const scopes = [this.#everybody, lane];
    const ends = scopes.map((scope) => scope.begin());
    if (asks) asks.askAt = now + ASK_AGAIN_MS;
    // The next turn is that of another namespace.
    this.#ready.delete(lane);
    this.#ready.add(lane);
    try {
      const isSent = entry ? await this.#patch(entry, now) : await this.#options.ask(pod);
      if (isSent) for (const scope of scopes) this.#succeeded(scope);
    } catch (error) {
      await this.#failed(turn, error, now);
    } finally {
      for (const end of ends) end();
      if (entry) {
        entry.isSent = false;
        this.#place(entry, this.#options.clock.monotonic());
      }
      this.#release(lane);
      this.#work();
    }
  }

  async #patch(entry: Entry, now: number): Promise<boolean> {
    const { pod, lane, changedAt, changes, next } = entry;
    const sinceChangeMs = now - changedAt;
    const repetition = DUE_MS.findLastIndex((dueMs) => sinceChangeMs >= dueMs);
    entry.isSent = true;
    lane.displace(entry);
    const isChanged = await this.#options.patch(pod, { isFirst: next === 0, repetition, sinceChangeMs });
    if (isChanged) this.#notePatch(pod);
    delete entry.refusals;
    if (entry.changes === changes) this.#advance(entry, repetition);
    else entry.dueAt = Math.max(entry.dueAt, this.#options.clock.monotonic() + BETWEEN_PATCHES_MS);
    return isChanged;
  }

  #succeeded(scope: PatchScope): void {
    scope.open();
    this.#options.onSuccess(scope.what);
  }

  async #failed({ lane, pod, entry }: Turn, error: unknown, sentAt: number): Promise<void> {
    const { clock, random, isAllowed, onFailure } = this.#options;
    const whose = await whoseIs(error, namesIn(pod), isAllowed);
    if (this.#isClosed) return;
    const now = clock.monotonic();
    if (whose !== 'nobody') this.#failing.add(whose === 'everybody' ? this.#everybody : lane);
    if (whose !== 'everybody' && apiFailureOf(error)) this.#succeeded(this.#everybody);
    if (whose === 'namespace' || whose === 'everybody') {
      const scope = whose === 'namespace' ? lane : this.#everybody;
      if (scope.hasFailedSince(sentAt)) {
        scope.closeUntil(now + pauseAfter(error));
        return;
      }
      const delayMs = scope.close(now, error);
      onFailure({ error, what: scope.what, pod: undefined, isCounted: true, delayMs });
    } else if (!entry) {
      // A webhook that is not asked in a dry run says nothing against a patch.
      if (isDryRunRefused(error)) this.#succeeded(lane);
      else lane.askLater(now, error);
    } else if (whose === 'nobody') this.#remove(entry);
    else {
      const isCounted = entry.refusals === undefined;
      const delayMs = (entry.refusals ??= new ApiBackoff(random)).after(error);
      entry.dueAt = now + delayMs;
      onFailure({ error, what: lane.what, pod, isCounted, delayMs });
    }
  }

  /** This patch, and those before it, are done. */
  #advance(entry: Entry, repetition: number): void {
    entry.next = repetition + 1;
    const dueMs = DUE_MS[entry.next];
    const mayBeMissed = entry.changedAt - this.#interruptedAt < LAG_MS;
    if (dueMs === undefined || !mayBeMissed) this.#remove(entry);
    else entry.dueAt = entry.changedAt + dueMs;
  }

  #remove(entry: Entry): void {
    entry.lane.remove(entry);
    this.#release(entry.lane);
  }

  /** Forgets a lane in which nothing is left to do. */
  #release(lane: Lane): void {
    const { isHealthy, onSuccess } = this.#options;
    if (!lane.isIdle || !isHealthy(lane.what) || this.#isClosed) return;
    if (lane.namespace !== undefined) this.#lanes.delete(lane.namespace);
    this.#failing.delete(lane);
    onSuccess(lane.what);
  }

  #laneOf(pod: string): Lane {
    const { namespace } = namesIn(pod);
    const known = this.#lanes.get(namespace);
    if (known) return known;
    const lane = new Lane(namespace, MOST_OF_NAMESPACE, this.#options.random);
    this.#lanes.set(namespace, lane);
    return lane;
  }

  #entryOf(pod: string): Entry | undefined {
    return this.#lanes.get(namesIn(pod).namespace)?.entries.get(pod);
  }

  #notePatch(pod: string): void {
    const now = this.#options.clock.monotonic();
    this.#patchedAt.delete(pod);
    this.#patchedAt.set(pod, now);
    for (const [oldest, at] of this.#patchedAt) {
      if (now - at < BETWEEN_PATCHES_MS) return;
      this.#patchedAt.delete(oldest);
    }
  }
}
