/**
 * Follows the objects of one resource: a list, and then a watch from the version of the list.
 *
 * | what happens                                      | next                                         |
 * |---------------------------------------------------|----------------------------------------------|
 * | a list succeeds                                   | a watch                                      |
 * | a list fails                                      | a list, after a delay                        |
 * | a page of a list is longer than is read of it     | the same page with fewer objects             |
 * | a watch ends as agreed, or after it was silent    | a watch from the last version                |
 * | the connection is lost                            | a watch from the last version, after a delay |
 * | a watch is refused, or sends nonsense             | a list, after a delay                        |
 * | a watch that continues another one is 410 Gone    | a list                                       |
 * | a watch after a list is 410 Gone                  | a list, after a delay                        |
 * | `resyncIntervalMs` have passed since the list     | a list                                       |
 *
 * Delays double, to 5 s without an answer and to 30 s after a refusal, and start again from the first one once a watch has
 * lasted for 5 s. `Retry-After` is obeyed.
 */
import { onAbort } from '../core/abort.js';
import type { Clock, Scheduled } from '../core/clock.js';
import { withDeadline } from '../core/deadline.js';
import type { Random } from '../core/random.js';
import { sleep } from '../core/sleep.js';
import { ApiBackoff } from './api-backoff.js';
import { apiFailureOf } from './api-failure.js';
import { ApiFailure, TooLong } from './api-request.js';
import type { ClusterClient } from './cluster-client.js';

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
  /** These objects exist, by `<namespace>/<name>`, and no others. */
  readonly onList: (objects: ReadonlyMap<string, T>) => void;
  /** An object has changed; undefined: it no longer exists, or there is nothing to keep of it. */
  readonly onChange: (name: string, object: T | undefined) => void;
  /** The API server did not answer, or ended a watch before its time. */
  readonly onInterruption: () => void;
  /** A list is complete, or a watch has begun to speak. */
  readonly onSuccess: () => void;
  /** An attempt failed; the next one begins after `delayMs`. */
  readonly onFailure: (error: unknown, delayMs: number) => void;
}

const METADATA = 'g=meta.k8s.io;v=v1';

/** Pods have some 10 KiB. */
const OBJECTS_PER_PAGE = 250;
const MOST_PAGES = 400;
const PAGE_TIMEOUT_MS = 30_000;

/** The API server sends a bookmark every minute, so a watch that is silent for longer is broken. */
const SILENCE_MS = 90_000;
const WATCH_SECONDS = 300;
/** The clock of the API server measures the time of a watch. */
const EARLY_MS = 1_000;
/** A watch that has lasted for this long was not refused. */
const LASTING_MS = 5_000;

export class ObjectFollower<T> {
  readonly #options: FollowerOptions<T>;
  readonly #backoff: ApiBackoff;
  /** Where the next watch begins; undefined: the next attempt is a list. */
  #version: string | undefined;
  /** Monotonic ms. */
  #listedAt = -Infinity;
  #pageSize = OBJECTS_PER_PAGE;

  constructor(options: FollowerOptions<T>) {
    this.#options = options;
    this.#backoff = new ApiBackoff(options.random);
  }

  /** Rejects with the reason of the signal when that aborts; never otherwise. */
  async follow(signal: AbortSignal): Promise<never> {
    const { clock } = this.#options;
    for (;;) {
      const beganAt = clock.monotonic();
      const isContinued = this.#version !== undefined;
      let failure: { error: unknown } | undefined;
      try {
        await this.#attempt(signal);
      } catch (error) {
        signal.throwIfAborted();
        failure = { error };
        const refused = apiFailureOf(error);
        if (refused) this.#version = undefined;
        else this.#options.onInterruption();
        // What is to be expected after a pause. An attempt that began with a list is delayed.
        if (refused?.status === 410 && isContinued) continue;
      }
      const isLasting = clock.monotonic() - beganAt >= LASTING_MS;
      if (isLasting) this.#backoff.reset();
      if (isLasting && !failure) continue;
      const delayMs = this.#backoff.after(failure?.error);
      if (failure) this.#options.onFailure(failure.error, delayMs);
      await sleep(clock, delayMs, { signal });
    }
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    const { clock, resyncIntervalMs } = this.#options;
    const ageMs = clock.monotonic() - this.#listedAt;
    if (this.#version === undefined || ageMs >= resyncIntervalMs) await this.#list(signal);
    const restMs = resyncIntervalMs - (clock.monotonic() - this.#listedAt);
    await this.#watch(Math.max(1, Math.min(WATCH_SECONDS, Math.ceil(restMs / 1_000))), signal);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { clock, read, onList } = this.#options;
    this.#version = undefined;
    const objects = new Map<string, T>();
    let version: string;
    let from: string | undefined;
    let pages = 0;
    do {
      const page = await this.#page(from, signal);
      for (const object of page.items) {
        const name = objectName(object);
        const kept = name === undefined ? undefined : read(object);
        if (name !== undefined && kept !== undefined) objects.set(name, kept);
      }
      pages += 1;
      if (pages > MOST_PAGES) throw new ApiFailure(200, `the list has more than ${MOST_PAGES} pages`);
      ({ version, next: from } = page);
    } while (from !== undefined);
    // Not before: a watch must not begin after a part of a list.
    this.#version = version;
    this.#listedAt = clock.monotonic();
    onList(objects);
    this.#options.onSuccess();
  }

  async #page(from: string | undefined, signal: AbortSignal): Promise<Page> {
    const { client, clock } = this.#options;
    for (;;) {
      const path = this.#url({
        limit: String(this.#pageSize),
        ...(from !== undefined && { continue: from }),
      });
      const accept = this.#accept('PartialObjectMetadataList');
      try {
        const answer = await withDeadline(
          (inTime) => client.request({ method: 'GET', path, accept, signal: inTime }),
          {
            clock,
            timeoutMs: PAGE_TIMEOUT_MS,
            signal,
            late: () => new Error(`the list took over ${PAGE_TIMEOUT_MS} ms`),
          },
        );
        return pageOf(answer);
      } catch (error) {
        if (!(error instanceof TooLong) || this.#pageSize === 1) throw error;
        this.#pageSize = Math.ceil(this.#pageSize / 4);
      }
    }
  }

  async #watch(seconds: number, signal: AbortSignal): Promise<void> {
    const { client, clock, read, onChange, onSuccess, onInterruption } = this.#options;
    const endsAt = clock.monotonic() + seconds * 1_000;
    const path = this.#url({
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: this.#version ?? '',
      timeoutSeconds: String(seconds),
    });
    const ended = new AbortController();
    const forget = onAbort(signal, () => ended.abort(signal.reason));
    const listen = (): Scheduled =>
      clock.schedule(() => ended.abort(new Error(`the watch was silent for ${SILENCE_MS} ms`)), SILENCE_MS);
    let silence = listen();
    try {
      const accept = this.#accept('PartialObjectMetadata');
      for await (const line of client.lines({ method: 'GET', path, accept, signal: ended.signal })) {
        silence.cancel();
        silence = listen();
        if (line.trim() === '') continue;
        const { type, object } = eventOf(line);
        onSuccess();
        const name = objectName(object);
        if (name !== undefined) onChange(name, type === 'DELETED' ? undefined : read(object));
        this.#version = versionOf(object) ?? this.#version;
        signal.throwIfAborted();
      }
    } catch (error) {
      // Unless it was ended for its silence.
      if (signal.aborted || !ended.signal.aborted) throw error;
    } finally {
      silence.cancel();
      forget();
    }
    if (clock.monotonic() < endsAt - EARLY_MS) onInterruption();
  }

  #url(parameters: Readonly<Record<string, string>>): string {
    const { path, selection } = this.#options;
    return `${path}?${new URLSearchParams({ ...selection, ...parameters }).toString()}`;
  }

  #accept(as: string): string {
    return this.#options.isMetadataOnly ? `application/json;as=${as};${METADATA}` : 'application/json';
  }
}

interface Page {
  readonly items: readonly unknown[];
  readonly version: string;
  readonly next: string | undefined;
}

function pageOf(answer: unknown): Page {
  const { items: found, metadata } = Object(answer) as { items?: unknown; metadata?: unknown };
  // An empty list of metadata says null.
  const items = found === null ? [] : found;
  const { continue: next } = Object(metadata) as { continue?: unknown };
  const version = versionOf(answer);
  if (!Array.isArray(items) || version === undefined) throw new ApiFailure(200, 'the answer is not a list');
  return { items, version, next: typeof next === 'string' && next !== '' ? next : undefined };
}

/** @throws {ApiFailure} for what is not an event, and for the event of a failure, such as 410 Gone. */
function eventOf(line: string): { type: string; object: unknown } {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    throw new ApiFailure(200, 'the watch sent a line that is not JSON');
  }
  const { type, object } = Object(event) as { type?: unknown; object?: unknown };
  if (type === 'ERROR') {
    const { code, message } = Object(object) as { code?: unknown; message?: unknown };
    throw new ApiFailure(
      typeof code === 'number' ? code : 500,
      typeof message === 'string' ? message : 'the watch failed',
      { body: object },
    );
  }
  if (typeof type !== 'string' || typeof object !== 'object' || object === null)
    throw new ApiFailure(200, 'the watch sent something that is not an event');
  return { type, object };
}

function versionOf(object: unknown): string | undefined {
  const { resourceVersion } = metadataOf(object);
  return typeof resourceVersion === 'string' && resourceVersion !== '' ? resourceVersion : undefined;
}

/** `<namespace>/<name>`; undefined for bookmarks, and for what is not an object. */
function objectName(object: unknown): string | undefined {
  const { namespace, name } = metadataOf(object);
  const isNamed = typeof namespace === 'string' && typeof name === 'string' && name !== '';
  return isNamed ? `${namespace}/${name}` : undefined;
}

function metadataOf(object: unknown): Readonly<Record<string, unknown>> {
  return Object((Object(object) as { metadata?: unknown }).metadata) as Readonly<Record<string, unknown>>;
}
