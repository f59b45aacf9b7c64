/**
 * Follows the objects of one resource: a list, and then watches from the version of the list. The rules are those of the
 * reflector of client-go, except for silence, which that takes for health.
 *
 * | step  | what happens                                        | next                                           |
 * |-------|-----------------------------------------------------|------------------------------------------------|
 * | list  | the first page has everything                       | a watch                                        |
 * |       | it does not                                         | a streaming list                               |
 * |       | a streaming list is complete                        | the same stream is the watch                   |
 * |       | a streaming list is refused, fails, or pauses       | the other pages, and a watch                   |
 * |       | a page fails                                        | a list, after a delay                          |
 * | watch | it ends as agreed                                   | a watch from the last version                  |
 * |       | it ends early                                       | a watch from the last version, after a delay   |
 * |       | the connection is lost, or the answer is 429        | a watch from the last version, after a delay   |
 * |       | it sends nothing for longer than between bookmarks  | a list; if that finds a change, the watch failed |
 * |       | it is 410 Gone, and the step before was a watch     | a list                                         |
 * |       | it is refused otherwise, or sends nonsense          | a list, after a delay                          |
 * | both  | `resyncIntervalMs` have passed since the list       | a list                                         |
 *
 * A delay follows a failure of the step, except where a watch ended early or lost its connection after `LASTING_MS`, as
 * load balancers end what is idle. A failure of a step ends with a success of the same step: a complete list; an event of
 * a watch, its end as agreed, silence in which nothing has changed, or that it has lasted. Delays double, to 5 s without
 * an answer and to 30 s after a refusal, and start again from the first one once a watch has lasted. `Retry-After` is
 * obeyed. Little is learned from trouble: each list begins with whole pages.
 *
 * That a watch ends says nothing of others: only where the next one, or a list, is not answered was the API server away.
 */
import type { Clock, Random } from 'resilient-watcher';
import { apiFailureOf, sleep, withDeadline } from 'resilient-watcher/internal';
import type { ClusterClient } from 'resilient-watcher/kubernetes';

import { ApiBackoff } from './api-backoff.js';
import { isEndOfList, nameOf, resourceVersionOf } from './object-metadata.js';
import { LatePage, MOST_OBJECTS, pagesOf } from './object-pages.js';
import { SilentWatch, WatchStream } from './watch-stream.js';

/** What succeeds or fails. */
export type FollowerStep = 'list' | 'watch';

/** What is followed, and who hears of it. */
interface FollowerOptions<T> {
  readonly client: ClusterClient;
  /** Where the objects are, such as `/api/v1/namespaces/shop/pods`. */
  readonly path: string;
  /** Which of them: parameters of the query. */
  readonly selection: Readonly<Record<string, string>>;
  /** Whether only the metadata of the objects is requested. */
  readonly isMetadataOnly: boolean;
  readonly resyncIntervalMs: number;
  readonly clock: Clock;
  readonly random: Random;
  /** What to keep of an object; undefined: nothing. */
  readonly read: (object: unknown) => T | undefined;
  /** These objects exist, by `<namespace>/<name>`, and no others. Returns whether that was not known. */
  readonly onList: (objects: ReadonlyMap<string, T>) => boolean;
  /** An object has changed; undefined: it no longer exists, or there is nothing to keep of it. */
  readonly onChange: (name: string, object: T | undefined) => void;
  /** The API server was away. */
  readonly onInterruption: () => void;
  readonly onSuccess: (step: FollowerStep) => void;
  /** An attempt failed; the next one begins after `delayMs`. */
  readonly onFailure: (step: FollowerStep, error: unknown, delayMs: number) => void;
}

const METADATA = 'g=meta.k8s.io;v=v1';

const PAGE_TIMEOUT_MS = 30_000;

/**
 * A streaming list is complete in this time, ms, and a little more for each object. Otherwise a proxy holds it back, or the
 * API server does not know streaming lists, and sends what is new.
 */
const STREAM_TIMEOUT_MS = 10_000;
const STREAM_OBJECT_MS = 5;

/**
 * The API server sends a bookmark every minute, unless it has no watch cache: a watch that is silent for longer may be
 * deaf.
 */
const SILENCE_MS = 90_000;

/** A watch lasts from this time to twice as long, so that not all begin again at once. */
const WATCH_SECONDS = 300;

/** A watch that has lasted for this long was not refused. */
const LASTING_MS = 5_000;

/** What a load balancer answers when the API server does not. */
const AWAY: readonly number[] = [502, 503, 504];

export class ObjectFollower<T> {
  readonly #options: FollowerOptions<T>;
  readonly #backoff: ApiBackoff;
  /** Where the next watch begins; undefined: a list is next. */
  #version: string | undefined;
  /** Monotonic ms. */
  #listedAt = -Infinity;
  /** The watch that a streaming list has become. */
  #stream: WatchStream | undefined;
  /** Of the watch before the list, which tells whether anything was kept back. */
  #silence: SilentWatch | undefined;
  /** Whether the watch has sent an event. */
  #isHeard = false;
  /** A watch that has lasted for this long without an event is well. */
  #lastingMs = LASTING_MS;

  constructor(options: FollowerOptions<T>) {
    this.#options = options;
    this.#backoff = new ApiBackoff(options.random);
  }

  /** Rejects with the reason of the signal when that aborts; never otherwise. */
  async follow(signal: AbortSignal): Promise<never> {
    const { clock, onInterruption, onFailure } = this.#options;
    let before: FollowerStep | undefined;
    for (;;) {
      const step = this.#version === undefined || this.#restMs() <= 0 ? 'list' : 'watch';
      const isContinued = before === 'watch';
      before = step;
      const beganAt = clock.monotonic();
      let failure: unknown;
      try {
        await (step === 'list' ? this.#list(signal) : this.#watch(signal));
        if (step === 'list') continue;
      } catch (error) {
        signal.throwIfAborted();
        failure = error;
      }
      if (failure instanceof SilentWatch) {
        this.#silence = failure;
        this.#version = undefined;
        continue;
      }
      const refused = apiFailureOf(failure);
      const isLost = failure !== undefined && !refused;
      if (refused && refused.status !== 429) this.#version = undefined;
      // To be expected after a pause.
      if (refused?.status === 410 && isContinued) continue;
      const isLasting = step === 'watch' && clock.monotonic() - beganAt >= LASTING_MS;
      if (isLasting) this.#backoff.reset();
      if (isLasting && failure === undefined) continue;
      const isAway = isLost || (refused !== undefined && AWAY.includes(refused.status));
      if (isAway && !isLasting && !this.#isHeard) onInterruption();
      const delayMs = this.#backoff.after(failure);
      const isEnd = failure === undefined || (isLasting && isLost);
      if (!isEnd) onFailure(step, failure, delayMs);
      await sleep(clock, delayMs, { signal });
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    this.#version = undefined;
    this.#isHeard = false;
    const objects = new Map<string, T>();
    let isFirst = true;
    const pages = pagesOf(
      (parameters) => this.#page(parameters, signal),
      (error) => this.#options.onFailure('list', error, 0),
    );
    for await (const { items, version, next } of pages) {
      if (isFirst && next !== undefined && (await this.#streamList(signal))) return;
      isFirst = false;
      for (const object of items) this.#keep(objects, object);
      if (next === undefined) this.#listed(objects, version);
    }
  }

  /** Resolves to false if the pages have to be read; their failure says more. */
  async #streamList(signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options;
    const objects = new Map<string, T>();
    const stream = this.#open({ sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }, signal);
    let dueAt = clock.monotonic() + STREAM_TIMEOUT_MS;
    try {
      while (objects.size < MOST_OBJECTS && clock.monotonic() < dueAt) {
        const event = await stream.next(dueAt - clock.monotonic());
        if (!event) return false;
        const { type, object } = event;
        const version = resourceVersionOf(object);
        if (type === 'BOOKMARK' && isEndOfList(object) && version !== undefined) {
          this.#listed(objects, version);
          this.#stream = stream;
          return true;
        }
        if (type === 'ADDED') dueAt += STREAM_OBJECT_MS;
        this.#keep(objects, object, type === 'DELETED');
      }
    } catch {
      signal.throwIfAborted();
    } finally {
      if (this.#stream !== stream) stream.close();
    }
    return false;
  }

  #keep(objects: Map<string, T>, object: unknown, isDeleted = false): void {
    const name = nameOf(object);
    if (name === undefined) return;
    const kept = isDeleted ? undefined : this.#options.read(object);
    if (kept === undefined) objects.delete(name);
    else objects.set(name, kept);
  }

  /** Not before a list is complete: a watch must not begin after a part of it. */
  #listed(objects: ReadonlyMap<string, T>, version: string): void {
    const { clock, onList, onSuccess, onFailure } = this.#options;
    const silence = this.#silence;
    this.#silence = undefined;
    this.#version = version;
    this.#listedAt = clock.monotonic();
    const isNew = onList(objects);
    onSuccess('list');
    if (!silence) return;
    // From a watch that is deaf, silence says nothing.
    this.#lastingMs = isNew ? Infinity : LASTING_MS;
    if (isNew) onFailure('watch', silence, 0);
    else onSuccess('watch');
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { clock, read, onChange, onSuccess } = this.#options;
    const stream = this.#stream ?? this.#open({ resourceVersion: this.#version ?? '' }, signal);
    this.#stream = undefined;
    this.#isHeard = false;
    const lastingMs = Math.min(this.#lastingMs, 2 * SILENCE_MS);
    const lasting = clock.schedule(() => onSuccess('watch'), lastingMs, { ref: false });
    try {
      for (let event = await stream.next(SILENCE_MS); event; event = await stream.next(SILENCE_MS)) {
        const { type, object } = event;
        this.#isHeard = true;
        this.#lastingMs = LASTING_MS;
        onSuccess('watch');
        const name = nameOf(object);
        if (name !== undefined) onChange(name, type === 'DELETED' ? undefined : read(object));
        this.#version = resourceVersionOf(object) ?? this.#version;
      }
    } catch (error) {
      // A refusal that comes late, as that of a gateway, which has waited in vain.
      if (!this.#isHeard && apiFailureOf(error)) this.#lastingMs = stream.ageMs + LASTING_MS;
      throw error;
    } finally {
      lasting.cancel();
      stream.close();
    }
    if (stream.isOver) onSuccess('watch');
    else if (!this.#isHeard && stream.ageMs < LASTING_MS)
      throw new Error('the watch ended at once, without an event');
  }

  /** How long until the next list, ms. */
  #restMs(): number {
    const { clock, resyncIntervalMs } = this.#options;
    return this.#listedAt + resyncIntervalMs - clock.monotonic();
  }

  #page(parameters: Readonly<Record<string, string>>, signal: AbortSignal): Promise<unknown> {
    const { client, clock } = this.#options;
    const [path, accept] = [this.#url(parameters), this.#accept('PartialObjectMetadataList')];
    return withDeadline((inTime) => client.request({ method: 'GET', path, accept, signal: inTime }), {
      clock,
      timeoutMs: PAGE_TIMEOUT_MS,
      signal,
      late: () => new LatePage(`the list took over ${PAGE_TIMEOUT_MS} ms`),
    });
  }

  #open(parameters: Readonly<Record<string, string>>, signal: AbortSignal): WatchStream {
    const { client, clock, random, resyncIntervalMs } = this.#options;
    const restMs = this.#version === undefined ? resyncIntervalMs : this.#restMs();
    const longest = Math.round(WATCH_SECONDS * (1 + random()));
    const seconds = Math.max(2, Math.min(longest, Math.ceil(restMs / 1_000)));
    const path = this.#url({
      watch: '1',
      allowWatchBookmarks: 'true',
      timeoutSeconds: String(seconds),
      ...parameters,
    });
    const accept = this.#accept('PartialObjectMetadata');
    const open = (ended: AbortSignal): AsyncIterable<string> =>
      client.lines({ method: 'GET', path, accept, signal: ended });
    return new WatchStream(open, { clock, signal, seconds });
  }

  #url(parameters: Readonly<Record<string, string>>): string {
    const { path, selection } = this.#options;
    return `${path}?${new URLSearchParams({ ...selection, ...parameters }).toString()}`;
  }

  #accept(as: string): string {
    return this.#options.isMetadataOnly ? `application/json;as=${as};${METADATA}` : 'application/json';
  }
}
