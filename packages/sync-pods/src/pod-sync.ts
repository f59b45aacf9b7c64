import type { ComponentStatus } from 'resilient-watcher';
import {
  Component,
  Outcome,
  podServer,
  sha256,
  statusOf,
  type LifecycleState,
  type Verdict,
} from 'resilient-watcher/internal';
import { clusterClient, type ClusterClient } from 'resilient-watcher/kubernetes';

import { clusterFailure } from './cluster-failure.js';
import { MountIndex } from './mount-index.js';
import { mountingPod, type MountingPod, type ObjectKind } from './mounted-objects.js';
import { ObjectFollower, type FollowerStep } from './object-follower.js';
import { namesIn } from './patch-lane.js';
import { PatchQueue } from './patch-queue.js';
import type { DuePatch } from './patch-queue-options.js';
import { mayPatchPods, patchPod } from './pod-patch.js';
import { podSyncTelemetry, type PodSyncEvents } from './pod-sync-events.js';
import {
  resolvePodSyncOptions,
  type PodSyncOptions,
  type ResolvedPodSyncOptions,
} from './pod-sync-options.js';
import { RequestHealth } from './request-health.js';

/** The status of a `PodSync`. Plain data. */
export interface PodSyncStatus extends ComponentStatus {
  readonly state: LifecycleState;
  /** Whether all objects and pods have been listed. */
  readonly listed: boolean;
  /** False after three failures in a row, until a request of the same kind succeeds. */
  readonly healthy: boolean;
  /** The running pods that mount an object. */
  readonly pods: number;
  /** The ConfigMaps and Secrets. */
  readonly objects: number;
  /** The pods that wait for a patch. */
  readonly waiting: number;
  /** How many changes of pods' objects were followed by a patch. */
  readonly synced: number;
  /** How many further patches were sent to pods whose kubelet may have been behind. */
  readonly repeated: number;
  /** How many pods have waited for too long. */
  readonly behind: number;
}

/** An object of this pod has changed, at this time, monotonic ms. */
type Change = readonly [pod: string, at: number];

const DEFAULT_SELECTOR = 'resilient-watcher.dev/sync=true';
const UNFINISHED = 'status.phase!=Succeeded,status.phase!=Failed';

/**
 * Makes kubelet update the files of a pod as soon as a ConfigMap or Secret that it mounts has changed. By itself kubelet
 * looks once per period, 60 to 90 s by default; when an annotation of the pod changes, it looks at once. The annotation
 * `resilient-watcher.dev/mounted-versions` is a digest of the versions that the pod mounts, so a patch that is repeated
 * changes nothing, and several replicas need no leader. Nothing is restarted, and if no `PodSync` runs, kubelet delivers
 * after its period.
 *
 * Namespaces and kinds are followed independently: one that is forbidden or gone is reported, and the others are synced.
 * `start()` resolves once everything has been listed that is not forbidden; other failures are retried. Outside a pod, and
 * without a `client`, it rejects with a `KubernetesError` (`ERR_KUBECONFIG`). Objects that
 * changed while no `PodSync` ran are delivered then to pods that have the annotation, and by kubelet to the others.
 */
export class PodSync extends Component<PodSyncEvents, PodSyncStatus> {
  readonly #options: ResolvedPodSyncOptions;
  readonly #client: ClusterClient;
  readonly #index = new MountIndex();
  readonly #queue: PatchQueue;
  readonly #kinds: readonly ObjectKind[];
  readonly #health = new RequestHealth();
  readonly #namespaces: readonly (string | undefined)[];
  /** What has been listed: `<resource>/`, or `<resource>/<namespace>/`. */
  readonly #listed = new Set<string>();
  #synced = 0;
  #repeated = 0;
  #behind = 0;

  /** @throws {TypeError | RangeError} for a wrong option. */
  constructor(options?: PodSyncOptions) {
    const resolved = resolvePodSyncOptions(options);
    const { name, signal, clock } = resolved;
    super({
      kind: 'PodSync',
      name,
      signal,
      clock,
      description: { health: healthOf, telemetry: podSyncTelemetry },
    });
    this.#options = resolved;
    this.#client = resolved.client ?? clusterClient({ clock });
    this.#kinds = resolved.secrets ? ['configmaps', 'secrets'] : ['configmaps'];
    this.#namespaces = [...new Set<string | undefined>(resolved.namespaces ?? [undefined])];
    this.#queue = new PatchQueue({
      ...resolved,
      patch: (pod, due) => this.#patch(pod, due),
      ask: (pod) => this.#ask(pod),
      anyPod: (namespace) => {
        const pods = this.#index.podsIn(namespace);
        return pods[Math.floor(resolved.random() * pods.length)];
      },
      isHealthy: (what) => this.#health.isHealthyAt(what),
      isAllowed: (namespace) =>
        mayPatchPods(this.#client, namespace, { clock: resolved.clock, signal: this.lifetime.signal }),
      onBehind: (pod, waitedMs) => {
        this.#behind += 1;
        this.dispatch('behind', { ...namesIn(pod), waitedMs });
      },
      onFailure: ({ error, what, delayMs, ...rest }) => this.#failed(what, error, delayMs, rest),
      onSuccess: (what) => this.#succeeded(what),
    });
  }

  status(): PodSyncStatus {
    const { name, lifecycleState: state, lastError } = this;
    return {
      name,
      state,
      lastError,
      listed: this.#listed.size === this.#namespaces.length * (this.#kinds.length + 1),
      healthy: this.#health.isHealthy,
      pods: this.#index.pods,
      objects: this.#index.objects,
      waiting: this.#queue.length,
      synced: this.#synced,
      repeated: this.#repeated,
      behind: this.#behind,
    };
  }

  protected override get purpose(): string {
    return 'sync pods';
  }

  protected override onStart(): Promise<unknown> {
    if (!this.#options.client) podServer();
    return super.onStart();
  }

  protected override async onRunning(): Promise<void> {
    // None waits for another one, which may be forbidden.
    await Promise.all(
      this.#namespaces.flatMap((namespace) => [
        ...this.#kinds.map((kind) => this.#followObjects(kind, namespace)),
        this.#followPods(namespace),
      ]),
    );
  }

  protected override onClose(): void {
    this.#queue.close();
  }

  #followObjects(kind: ObjectKind, namespace: string | undefined): Promise<void> {
    const scope = scopeOf(kind, namespace);
    const set = (name: string, version: string | undefined): boolean => {
      const key = `${kind}/${name}`;
      const now = this.#options.clock.monotonic();
      if (this.#index.version(key) === version) return false;
      const pods = this.#index.setObject(key, version, this.#listed.has(scope) ? now : undefined);
      this.#add(pods.map((pod) => [pod, now]));
      return true;
    };
    const listed = (objects: ReadonlyMap<string, string>): boolean => {
      const known = this.#index.objectsIn(scope).map((key) => key.slice(kind.length + 1));
      let isNew = false;
      for (const name of known) if (!objects.has(name)) isNew = set(name, undefined) || isNew;
      for (const [name, version] of objects) isNew = set(name, version) || isNew;
      if (this.#listed.has(scope)) return isNew;
      this.#listed.add(scope);
      // Pods that were listed before it.
      const now = this.#options.clock.monotonic();
      const pods = this.#index.podsIn(namespace);
      this.#add(pods.filter((name) => this.#isOutdated(this.#index.pod(name))).map((name) => [name, now]));
      return isNew;
    };
    return this.#follow({
      resource: kind,
      namespace,
      read: versionOf,
      onList: listed,
      onChange: (name, version) => void set(name, version),
    });
  }

  #followPods(namespace: string | undefined): Promise<void> {
    const { namespaces, selector = namespaces ? undefined : DEFAULT_SELECTOR } = this.#options;
    const set = (pods: readonly (readonly [name: string, pod: MountingPod | undefined])[]): boolean => {
      const changes: Change[] = [];
      const news = pods.filter(([name, pod]) => this.#setPod(name, pod, changes));
      this.#add(changes);
      return news.length > 0;
    };
    return this.#follow<MountingPod>({
      resource: 'pods',
      namespace,
      selection: {
        fieldSelector: UNFINISHED,
        ...(selector !== undefined && { labelSelector: selector }),
      },
      read: (pod) => mountingPod(pod, this.#kinds),
      onList: (pods) => {
        const gone = this.#index.podsIn(namespace).filter((name) => !pods.has(name));
        const isNew = set([...gone.map((name) => [name, undefined] as const), ...pods]);
        this.#listed.add(scopeOf('pods', namespace));
        return isNew;
      },
      onChange: (name, pod) => void set([[name, pod]]),
    });
  }

  /**
   * Returns whether that was not known.
   * @param changes is extended by this pod, if it has to be patched.
   */
  #setPod(name: string, pod: MountingPod | undefined, changes: Change[]): boolean {
    const known = this.#index.setPod(name, pod);
    if (!pod || (known && known.uid !== pod.uid)) this.#queue.delete(name);
    if (!pod) return known !== undefined;
    const [digest, repetition = '0'] = pod.annotation?.split('.') ?? [];
    if (digest === this.#index.digestOf(pod)) this.#queue.annotated(name, Number(repetition) || 0);
    if (known?.uid === pod.uid) return known.annotation !== pod.annotation;
    const now = this.#options.clock.monotonic();
    // Its annotation is out of date, or kubelet may have mounted the old version of an object before we knew the pod.
    const changedAt = this.#isOutdated(pod) ? now : this.#index.recentChange(pod, now);
    if (changedAt !== undefined) changes.push([name, changedAt]);
    return true;
  }

  /** Whether the annotation says other versions than exist, as far as all that the pod mounts is known. */
  #isOutdated(pod: MountingPod | undefined): boolean {
    const [digest] = pod?.annotation?.split('.') ?? [];
    if (!pod || digest === undefined) return false;
    const isKnown = this.#kinds.every((kind) => {
      const isListed = [undefined, pod.namespace].some((of) => this.#listed.has(scopeOf(kind, of)));
      return isListed || !pod.objects.some(({ key }) => key.startsWith(scopeOf(kind, undefined)));
    });
    return isKnown && digest !== this.#index.digestOf(pod);
  }

  #add(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    const { random, splayMs } = this.#options;
    // Each replica begins elsewhere, and skips the pods that it sees patched by another.
    const first = Math.floor(random() * changes.length);
    const rotated = [...changes.slice(first), ...changes.slice(0, first)];
    this.#queue.add(rotated, (pod) => (splayMs === 0 ? 0 : splayMs * this.#placeOf(pod)));
  }

  /** From 0 to 1: where in the splay a pod is, in every replica the same. */
  #placeOf(pod: string): number {
    return Number.parseInt(sha256(this.#index.pod(pod)?.uid ?? '').slice(0, 8), 16) / 2 ** 32;
  }

  async #patch(name: string, { isFirst, repetition, sinceChangeMs }: DuePatch): Promise<boolean> {
    const pod = this.#index.pod(name);
    if (!pod) return false;
    const digest = this.#index.digestOf(pod);
    const value = repetition === 0 ? digest : `${digest}.${repetition}`;
    if (pod.annotation === value) return false;
    await this.#send(pod, value, false);
    if (isFirst) {
      this.#synced += 1;
      this.dispatch('synced', { namespace: pod.namespace, pod: pod.name, delayMs: sinceChangeMs });
    } else this.#repeated += 1;
    return true;
  }

  async #ask(name: string): Promise<boolean> {
    const pod = this.#index.pod(name);
    if (pod) await this.#send(pod, this.#index.digestOf(pod), true);
    return pod !== undefined;
  }

  #send(pod: MountingPod, value: string, isDryRun: boolean): Promise<void> {
    const { clock } = this.#options;
    return patchPod(this.#client, pod, value, { clock, signal: this.lifetime.signal, isDryRun });
  }

  /** Follows one resource until the end; resolves once it has been listed, or is forbidden. */
  #follow<T>(resource: {
    readonly resource: ObjectKind | 'pods';
    readonly namespace: string | undefined;
    readonly selection?: Readonly<Record<string, string>>;
    readonly read: (object: unknown) => T | undefined;
    readonly onList: (objects: ReadonlyMap<string, T>) => boolean;
    readonly onChange: (name: string, object: T | undefined) => void;
  }): Promise<void> {
    const { resource: name, namespace, selection = {}, onList, ...rest } = resource;
    const { clock, random, resyncIntervalMs } = this.#options;
    const what = (step: FollowerStep): string => `${step} ${name} in ${namespace ?? 'all namespaces'}`;
    const folder = namespace === undefined ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
    const settled = new Outcome<void>();
    const follower = new ObjectFollower<T>({
      ...rest,
      client: this.#client,
      path: `/api/v1/${folder}${name}`,
      selection,
      // Which objects a pod mounts is not in its metadata.
      isMetadataOnly: name !== 'pods',
      resyncIntervalMs,
      clock,
      random,
      onList: (objects) => {
        settled.resolve();
        return onList(objects);
      },
      onInterruption: () => this.#queue.interrupted(),
      onSuccess: (step) => this.#succeeded(what(step)),
      onFailure: (step, error, delayMs) => {
        this.#failed(what(step), error, delayMs);
        // The others are not kept waiting.
        if (statusOf(error) === 403 && !this.#health.isHealthyAt(what(step))) settled.resolve();
      },
    });
    // It only ends with the lifetime, which does not wait for a client that ignores its signal.
    void this.lifetime.untilEnd(follower.follow(this.lifetime.signal)).catch(() => {});
    return settled.promise;
  }

  #succeeded(what: string): void {
    if (this.#health.succeeded(what)) this.dispatch('healthy');
  }

  /** @param pod if only that is refused. */
  #failed(
    what: string,
    thrown: unknown,
    delayMs: number,
    { pod, isCounted }: { pod?: string | undefined; isCounted: boolean } = { isCounted: true },
  ): void {
    const wasHealthy = this.#health.isHealthyAt(what);
    const consecutiveFailures = isCounted ? this.#health.failed(what) : 0;
    const isHealthy = this.#health.isHealthyAt(what);
    const error = clusterFailure(thrown, {
      what: pod === undefined ? what : `patch pod ${pod}`,
      isOfPod: pod !== undefined,
      // The API server may have started a moment ago, and knows no roles yet.
      mayBePassing: isHealthy,
    });
    this.recordError(error);
    this.dispatch('retry', { error, request: what, delayMs });
    if (wasHealthy && !isHealthy) this.dispatch('unhealthy', { error, consecutiveFailures });
  }
}

function healthOf({ listed, healthy, lastError }: PodSyncStatus): Verdict {
  if (!healthy) return { unready: `unhealthy: ${lastError?.code ?? 'requests fail'}` };
  return { unready: listed ? undefined : 'not everything has been listed yet' };
}

function scopeOf(resource: ObjectKind | 'pods', namespace: string | undefined): string {
  return namespace === undefined ? `${resource}/` : `${resource}/${namespace}/`;
}

/** Which object it is, and in which state. */
function versionOf(object: unknown): string | undefined {
  const { metadata } = Object(object) as { metadata?: { uid?: unknown; resourceVersion?: unknown } };
  const { uid, resourceVersion } = metadata ?? {};
  return typeof uid === 'string' && typeof resourceVersion === 'string'
    ? `${uid} ${resourceVersion}`
    : undefined;
}
