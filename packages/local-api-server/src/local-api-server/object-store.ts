/** The objects of all resources, and their changes in order. */
import { randomUUID } from 'node:crypto';

import type { Clock } from 'resilient-watcher';
import { kubernetesTime } from 'resilient-watcher/internal';

/** An object as a test creates it; the server adds `uid`, `resourceVersion` and `creationTimestamp`. */
export interface ApiObject {
  readonly metadata: {
    /** Undefined: it is in no namespace. */
    readonly namespace?: string | undefined;
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
}

/** An object as the server has it. */
export interface StoredObject extends ApiObject {
  readonly metadata: ApiObject['metadata'] & { readonly uid: string; readonly resourceVersion: string };
}

/** One change, for watches that begin before it. */
export interface StoredChange {
  readonly resource: string;
  readonly version: number;
  readonly before: StoredObject | undefined;
  readonly after: StoredObject | undefined;
}

const LONGEST_HISTORY = 10_000;

/** What a watch is told. */
export interface Follower {
  notify(change: StoredChange): void;
  /** What it follows is forgotten. */
  expire(): void;
}

export class ObjectStore {
  /** Those that are told of each change. */
  readonly followers = new Set<Follower>();
  readonly #clock: Clock;
  readonly #objects = new Map<string, Map<string, StoredObject>>();
  readonly #history: StoredChange[] = [];
  #version = 1;
  #forgotten = 1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** That of the last change. */
  get version(): number {
    return this.#version;
  }

  /** Changes up to this version are forgotten. */
  get forgotten(): number {
    return this.#forgotten;
  }

  /** Creates or replaces an object. */
  put(resource: string, object: ApiObject): StoredObject {
    const before = this.get(resource, object.metadata.namespace, object.metadata.name);
    const metadata = {
      uid: before?.metadata.uid ?? randomUUID(),
      creationTimestamp: before?.metadata['creationTimestamp'] ?? kubernetesTime(this.#clock.now()),
      ...object.metadata,
      resourceVersion: String(this.#version + 1),
    };
    const after = { ...object, metadata };
    this.#change(resource, before, after);
    return after;
  }

  delete(resource: string, namespace: string | undefined, name: string): void {
    const before = this.get(resource, namespace, name);
    if (before) this.#change(resource, before, undefined);
  }

  get(resource: string, namespace: string | undefined, name: string): StoredObject | undefined {
    return this.#objects.get(resource)?.get(keyOf({ namespace, name }));
  }

  /** In the order of namespaces and names. @param version one that is not forgotten; default: the current one */
  list(resource: string, version = this.#version): readonly StoredObject[] {
    const objects = new Map(this.#objects.get(resource));
    for (let at = this.#history.length - 1; at >= 0; at -= 1) {
      const change = this.#history[at];
      if (!change || change.version <= version) break;
      if (change.resource !== resource) continue;
      const { before, after } = change;
      if (before) objects.set(keyOf(before.metadata), before);
      else if (after) objects.delete(keyOf(after.metadata));
    }
    return [...objects].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, object]) => object);
  }

  /** The changes after a version, oldest first. */
  changesAfter(version: number): readonly StoredChange[] {
    return this.#history.filter((change) => change.version > version);
  }

  /** Forgets all changes, as etcd does after 5 minutes: watches from older versions are 410 Gone, open ones as well. */
  forget(): void {
    this.#forgotten = this.#version;
    this.#history.length = 0;
    for (const follower of [...this.followers]) follower.expire();
  }

  #change(resource: string, before: StoredObject | undefined, after: StoredObject | undefined): void {
    this.#version += 1;
    const objects = this.#objects.get(resource) ?? new Map<string, StoredObject>();
    this.#objects.set(resource, objects);
    if (after) objects.set(keyOf(after.metadata), after);
    else if (before) objects.delete(keyOf(before.metadata));
    const change = { resource, version: this.#version, before, after };
    this.#history.push(change);
    if (this.#history.length > LONGEST_HISTORY) this.#forgotten = this.#history.shift()?.version ?? 0;
    for (const follower of [...this.followers]) follower.notify(change);
  }
}

/** In the order of etcd. */
export function keyOf({ namespace = '', name }: Pick<ApiObject['metadata'], 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}
