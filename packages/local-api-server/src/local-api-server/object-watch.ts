/** A watch of the objects of one resource. */
import type { Clock } from 'resilient-watcher';

import { failure, type ApiAnswer } from './api-answer.js';
import { expired, shown, tooLarge } from './object-answers.js';
import type { ObjectStore, StoredChange } from './object-store.js';
import { apiVersionOf, type Resource } from './resources.js';
import type { Selects } from './selectors.js';

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: object;
}

/** As the API server does about every minute, so that clients know the current version. */
const BOOKMARK_MS = 60_000;

interface WatchPorts {
  readonly store: ObjectStore;
  readonly clock: Clock;
  /** Whether a watch may begin with what exists (`sendInitialEvents`). */
  readonly hasStreamingLists: boolean;
}

export function watchObjects(
  resource: Resource,
  selects: Selects,
  { query, accept }: { readonly query: URLSearchParams; readonly accept: string },
  { store, clock, hasStreamingLists }: WatchPorts,
): ApiAnswer {
  const isList = query.get('sendInitialEvents') === 'true';
  const refusal = isList ? refusalOf(query, hasStreamingLists) : undefined;
  if (refusal !== undefined) {
    return failure(422, `ListOptions.meta.k8s.io "" is invalid: ${refusal}`);
  }
  const given = Number(query.get('resourceVersion') ?? 0);
  if (given > store.version) return tooLarge(given, store.version);
  // Without a version it begins with what exists, at any version.
  const hasInitial = isList || given === 0;
  const since = hasInitial ? store.version : given;
  const isForgotten = since < store.forgotten;
  return {
    status: 200,
    body: '',
    stream: (write, end) => {
      const send = (event: WatchEvent): void => write(`${JSON.stringify(event)}\n`);
      const follower = {
        notify: ({ resource: of, version, before, after }: StoredChange): void => {
          if (of !== resource.name) return;
          const [was, is] = [before && selects(before), after && selects(after)];
          if (is && after) send({ type: was ? 'MODIFIED' : 'ADDED', object: shown(after, accept) });
          else if (was && before) {
            // What is no longer selected is gone, as it was, at the version of this change.
            const metadata = { ...before.metadata, resourceVersion: String(version) };
            send({ type: 'DELETED', object: shown({ ...before, metadata }, accept) });
          }
        },
        expire: (): void => {
          send({ type: 'ERROR', object: expired(since).body as object });
          end();
        },
      };
      if (isForgotten) {
        follower.expire();
        return () => undefined;
      }
      const sendBookmark = (annotations?: object): void => {
        const metadata = { resourceVersion: String(store.version), ...(annotations && { annotations }) };
        send({
          type: 'BOOKMARK',
          object: { kind: resource.kind, apiVersion: apiVersionOf(resource), metadata },
        });
      };
      const bookmark = (): void => {
        sendBookmark();
        timers[0] = clock.schedule(bookmark, BOOKMARK_MS, { ref: false });
      };
      const timers = ['1', 'true'].includes(query.get('allowWatchBookmarks') ?? '')
        ? [clock.schedule(bookmark, BOOKMARK_MS, { ref: false })]
        : [];
      const seconds = Number(query.get('timeoutSeconds') ?? 0);
      if (seconds > 0) timers.push(clock.schedule(end, seconds * 1_000, { ref: false }));
      store.followers.add(follower);
      if (hasInitial) {
        for (const object of store.list(resource.name).filter(selects))
          send({ type: 'ADDED', object: shown(object, accept) });
      }
      if (isList) sendBookmark({ 'k8s.io/initial-events-end': 'true' });
      for (const change of store.changesAfter(since)) follower.notify(change);
      return () => {
        store.followers.delete(follower);
        for (const timer of timers) timer.cancel();
      };
    },
  };
}

/** Why the API server refuses a streaming list. */
function refusalOf(query: URLSearchParams, hasStreamingLists: boolean): string | undefined {
  if (!hasStreamingLists) {
    return 'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled';
  }
  if (query.get('resourceVersionMatch') === 'NotOlderThan') return undefined;
  return 'resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan';
}
