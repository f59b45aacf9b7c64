/**
 * ConfigMaps, Secrets and pods of `v1`: lists, streaming lists and watches, in full or as metadata only; patches of
 * pods.
 */
import { randomUUID } from 'node:crypto';

import type { Clock } from 'resilient-watcher';
import { kubernetesTime } from 'resilient-watcher/internal';

import { failure, type ApiAnswer } from './api-answer.js';

/** The resources whose objects a test can create. */
export type ObjectResource = 'configmaps' | 'secrets' | 'pods';

/** An object as a test creates it; the server adds `uid`, `resourceVersion` and `creationTimestamp`. */
export interface ApiObject {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

/** An object as the server has it. */
export interface StoredObject extends ApiObject {
  readonly metadata: ApiObject['metadata'] & { readonly uid: string; readonly resourceVersion: string };
}

interface ApiCall {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string;
  readonly body: unknown;
}

interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: object;
}

/** One change, for watches that begin before it. */
interface Change {
  readonly resource: ObjectResource;
  readonly version: number;
  readonly before: StoredObject | undefined;
  readonly after: StoredObject | undefined;
}

const KINDS: Readonly<Record<ObjectResource, string>> = {
  configmaps: 'ConfigMap',
  secrets: 'Secret',
  pods: 'Pod',
};

const PATH = /^\/api\/v1(?:\/namespaces\/([^/]+))?\/(configmaps|secrets|pods)(?:\/([^/]+))?$/;

/** As the API server does about every minute, so that clients know the current version. */
const BOOKMARK_MS = 60_000;
const LONGEST_HISTORY = 10_000;

export class ObjectApi {
  /** Whether a watch may begin with what exists (`sendInitialEvents`). */
  hasStreamingLists = true;
  readonly #clock: Clock;
  readonly #objects: Readonly<Record<ObjectResource, Map<string, StoredObject>>> = {
    configmaps: new Map(),
    secrets: new Map(),
    pods: new Map(),
  };
  readonly #history: Change[] = [];
  readonly #watches = new Set<{ notify(change: Change): void; expire(): void }>();
  #version = 1;
  /** Changes up to this version are forgotten. */
  #forgotten = 1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  put(resource: ObjectResource, object: ApiObject): StoredObject {
    const { namespace, name } = object.metadata;
    const before = this.get(resource, namespace, name);
    const metadata = {
      uid: before?.metadata.uid ?? randomUUID(),
      creationTimestamp: kubernetesTime(this.#clock.now()),
      ...object.metadata,
      resourceVersion: String(this.#version + 1),
    };
    const after = { apiVersion: 'v1', kind: KINDS[resource], ...object, metadata };
    this.#change(resource, before, after);
    return after;
  }

  delete(resource: ObjectResource, namespace: string, name: string): void {
    const before = this.get(resource, namespace, name);
    if (before) this.#change(resource, before, undefined);
  }

  get(resource: ObjectResource, namespace: string, name: string): StoredObject | undefined {
    return this.#objects[resource].get(`${namespace}/${name}`);
  }

  /** Forgets all changes, as etcd does after 5 minutes: watches from older versions are 410 Gone, open ones as well. */
  expireWatches(): void {
    this.#forgotten = this.#version;
    this.#history.length = 0;
    for (const watch of [...this.#watches]) watch.expire();
  }

  /** Undefined for other paths. */
  answer(call: ApiCall): ApiAnswer | undefined {
    const [, namespace, found, name] = PATH.exec(call.path) ?? [];
    if (found === undefined) return undefined;
    const resource = found as ObjectResource;
    if (name === undefined) {
      if (call.method !== 'GET') return failure(405, `${call.method} is not supported`);
      const selects = selectorOf(call.query, namespace);
      return call.query.get('watch') === null
        ? this.#list(resource, selects, call)
        : this.#watch(resource, selects, call);
    }
    const object = this.get(resource, namespace ?? '', name);
    if (!object) return failure(404, `${resource} "${name}" not found`);
    if (call.method === 'GET') return { status: 200, body: shown(object, call.accept) };
    if (call.method !== 'PATCH' || resource !== 'pods')
      return failure(405, `${call.method} is not supported`);
    return this.#patch(object, call);
  }

  #patch(pod: StoredObject, { body, accept, query }: ApiCall): ApiAnswer {
    const { metadata } = Object(body) as { metadata?: { uid?: string; annotations?: object } };
    if (!metadata) return failure(400, 'only the metadata of a pod can be patched');
    const { name, uid } = pod.metadata;
    if (metadata.uid !== undefined && metadata.uid !== uid) {
      const why = `metadata.uid: Invalid value: "${metadata.uid}": field is immutable`;
      return failure(422, `Pod "${name}" is invalid: ${why}`);
    }
    const given = { ...pod.metadata.annotations, ...metadata.annotations } as Record<string, string | null>;
    const annotations = Object.fromEntries(
      Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== null),
    );
    const isSame = JSON.stringify(annotations) === JSON.stringify(pod.metadata.annotations ?? {});
    const after =
      isSame || query.get('dryRun') === 'All'
        ? pod
        : this.put('pods', { ...pod, metadata: { ...pod.metadata, annotations } });
    return { status: 200, body: shown(after, accept) };
  }

  #list(resource: ObjectResource, selects: Selects, { query, accept }: ApiCall): ApiAnswer {
    const all = [...this.#objects[resource].values()].filter(selects);
    const from = Number(query.get('continue') ?? 0);
    const to = from + (Number(query.get('limit') ?? 0) || all.length);
    const isPartial = accept.includes('as=PartialObjectMetadataList');
    return {
      status: 200,
      body: {
        apiVersion: isPartial ? 'meta.k8s.io/v1' : 'v1',
        kind: isPartial ? 'PartialObjectMetadataList' : `${KINDS[resource]}List`,
        metadata: {
          resourceVersion: String(this.#version),
          ...(to < all.length && { continue: String(to) }),
        },
        // As a real one.
        items:
          isPartial && all.length === 0 ? null : all.slice(from, to).map((object) => shown(object, accept)),
      },
    };
  }

  #watch(resource: ObjectResource, selects: Selects, { query, accept }: ApiCall): ApiAnswer {
    const isList = query.get('sendInitialEvents') === 'true';
    const refusal = isList ? this.#refusalOf(query) : undefined;
    if (refusal !== undefined) {
      return failure(422, `ListOptions.meta.k8s.io "" is invalid: ${refusal}`);
    }
    const since = isList ? this.#version : Number(query.get('resourceVersion') ?? 0);
    if (since < this.#forgotten) return failure(410, `too old resource version: ${since}`);
    return {
      status: 200,
      body: '',
      stream: (write, end) => {
        const send = (event: WatchEvent): void => write(`${JSON.stringify(event)}\n`);
        const watch = {
          notify: ({ resource: of, before, after }: Change): void => {
            if (of !== resource) return;
            const [was, is] = [before && selects(before), after && selects(after)];
            const type = is ? (was ? 'MODIFIED' : 'ADDED') : was ? 'DELETED' : undefined;
            const object = after ?? before;
            if (type && object) send({ type, object: shown(object, accept) });
          },
          expire: (): void => {
            const { body } = failure(410, 'The resourceVersion for the provided watch is too old.');
            send({ type: 'ERROR', object: body as object });
            end();
          },
        };
        const sendBookmark = (annotations?: object): void => {
          const metadata = { resourceVersion: String(this.#version), ...(annotations && { annotations }) };
          send({ type: 'BOOKMARK', object: { kind: KINDS[resource], apiVersion: 'v1', metadata } });
        };
        const bookmark = (): void => {
          sendBookmark();
          timers[0] = this.#clock.schedule(bookmark, BOOKMARK_MS, { ref: false });
        };
        const timers = [this.#clock.schedule(bookmark, BOOKMARK_MS, { ref: false })];
        const seconds = Number(query.get('timeoutSeconds') ?? 0);
        if (seconds > 0) timers.push(this.#clock.schedule(end, seconds * 1_000, { ref: false }));
        this.#watches.add(watch);
        if (isList) {
          for (const object of [...this.#objects[resource].values()].filter(selects))
            send({ type: 'ADDED', object: shown(object, accept) });
          sendBookmark({ 'k8s.io/initial-events-end': 'true' });
        }
        for (const change of this.#history) if (change.version > since) watch.notify(change);
        return () => {
          this.#watches.delete(watch);
          for (const timer of timers) timer.cancel();
        };
      },
    };
  }

  /** Why the API server refuses a streaming list. */
  #refusalOf(query: URLSearchParams): string | undefined {
    if (!this.hasStreamingLists) {
      return 'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled';
    }
    if (query.get('resourceVersionMatch') === 'NotOlderThan') return undefined;
    return 'resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan';
  }

  #change(resource: ObjectResource, before: StoredObject | undefined, after: StoredObject | undefined): void {
    this.#version += 1;
    const { namespace, name } = (after ?? before)?.metadata ?? { namespace: '', name: '' };
    if (after) this.#objects[resource].set(`${namespace}/${name}`, after);
    else this.#objects[resource].delete(`${namespace}/${name}`);
    // The last version of an object that is deleted is that of its deletion.
    const gone = before && {
      ...before,
      metadata: { ...before.metadata, resourceVersion: String(this.#version) },
    };
    const change = { resource, version: this.#version, before: after ? before : gone, after };
    this.#history.push(change);
    if (this.#history.length > LONGEST_HISTORY) this.#forgotten = this.#history.shift()?.version ?? 0;
    for (const watch of [...this.#watches]) watch.notify(change);
  }
}

type Selects = (object: StoredObject) => boolean;

/** Selectors of the form `key=value` and `status.phase!=value`. */
function selectorOf(query: URLSearchParams, namespace: string | undefined): Selects {
  const pairs = (name: string, separator: string): string[][] =>
    (query.get(name) ?? '')
      .split(',')
      .filter((part) => part !== '')
      .map((part) => part.split(separator));
  const labels = pairs('labelSelector', '=');
  const phases = pairs('fieldSelector', '!=').map(([, phase]) => phase);
  return ({ metadata, status }) => {
    const { phase } = Object(status) as { phase?: string };
    return (
      (namespace === undefined || metadata.namespace === namespace) &&
      labels.every(([label = '', value]) => metadata.labels?.[label] === value) &&
      !phases.includes(phase)
    );
  };
}

function shown(object: StoredObject, accept: string): object {
  if (!accept.includes('as=PartialObjectMetadata')) return object;
  return { apiVersion: 'meta.k8s.io/v1', kind: 'PartialObjectMetadata', metadata: object.metadata };
}
