import { sha256 } from 'resilient-watcher/internal';

import type { MountingPod } from './mounted-objects.js';

/** kubelet's watch may have an update this much later than ours, ms. A pod seen for the first time may be as late. */
const RECENT_MS = 10_000;

/** Which pods mount which objects, and the version of each object. All that is kept of a cluster. */
export class MountIndex {
  readonly #pods = new Map<string, MountingPod>();
  /** By key: the version of each object that exists. */
  readonly #versions = new Map<string, string>();
  /** The names of the pods that mount an object, by its key. */
  readonly #mountedBy = new Map<string, Set<string>>();
  /** When objects changed in the last seconds, monotonic ms, oldest first. */
  readonly #changedAt = new Map<string, number>();

  get pods(): number {
    return this.#pods.size;
  }

  get objects(): number {
    return this.#versions.size;
  }

  pod(name: string): MountingPod | undefined {
    return this.#pods.get(name);
  }

  /** The names of the pods in a namespace, or in all. */
  podsIn(namespace: string | undefined): string[] {
    return keysIn(this.#pods, namespace === undefined ? '' : `${namespace}/`);
  }

  /** The keys of the objects that begin with `prefix`. */
  objectsIn(prefix: string): string[] {
    return keysIn(this.#versions, prefix);
  }

  /** Undefined if the object does not exist, or has not been listed yet. */
  version(key: string): string | undefined {
    return this.#versions.get(key);
  }

  /** Replaces or removes a pod; returns what was known of it. */
  setPod(name: string, pod: MountingPod | undefined): MountingPod | undefined {
    const known = this.#pods.get(name);
    for (const { key } of known?.objects ?? []) {
      const names = this.#mountedBy.get(key);
      names?.delete(name);
      if (names?.size === 0) this.#mountedBy.delete(key);
    }
    if (!pod) {
      this.#pods.delete(name);
      return known;
    }
    this.#pods.set(name, pod);
    for (const { key } of pod.objects) {
      const names = this.#mountedBy.get(key) ?? new Set();
      this.#mountedBy.set(key, names.add(name));
    }
    return known;
  }

  /**
   * Sets the version of an object; undefined: it does not exist. Returns the names of the pods whose files change with
   * it. Without an object that is not optional, kubelet keeps the files, and a sync would only fail.
   * @param at monotonic ms; undefined if it is not known when the object changed.
   */
  setObject(key: string, version: string | undefined, at: number | undefined): string[] {
    if (version === undefined) this.#versions.delete(key);
    else this.#versions.set(key, version);
    if (at === undefined) return [];
    this.#forgetBefore(at - RECENT_MS);
    this.#changedAt.delete(key);
    this.#changedAt.set(key, at);
    const isMissed = (name: string): boolean =>
      this.#pods.get(name)?.objects.some((object) => object.key === key && object.isOptional) === true;
    const names = [...(this.#mountedBy.get(key) ?? [])];
    return version === undefined ? names.filter(isMissed) : names;
  }

  /** When an object of this pod last changed, monotonic ms, if that was a moment ago. */
  recentChange({ objects }: MountingPod, now: number): number | undefined {
    this.#forgetBefore(now - RECENT_MS);
    const times = objects.flatMap(({ key }) => this.#changedAt.get(key) ?? []);
    return times.length === 0 ? undefined : Math.max(...times);
  }

  /** A digest of the versions that the pod mounts. */
  digestOf({ objects }: MountingPod): string {
    const lines = objects.map(({ key }) => `${key} ${this.#versions.get(key) ?? ''}\n`);
    return sha256(lines.join('')).slice(0, 16);
  }

  #forgetBefore(time: number): void {
    for (const [key, at] of this.#changedAt) {
      if (at >= time) return;
      this.#changedAt.delete(key);
    }
  }
}

function keysIn(map: ReadonlyMap<string, unknown>, prefix: string): string[] {
  return [...map.keys()].filter((key) => key.startsWith(prefix));
}
