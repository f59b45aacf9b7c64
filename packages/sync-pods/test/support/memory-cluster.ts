import type { ClusterClient, ClusterRequest } from 'resilient-watcher/kubernetes';

import { ANNOTATION, podOf } from './pod-sync-scene.js';

/** What is known of a patch. */
interface Patch {
  readonly namespace: string;
  readonly name: string;
  readonly isDryRun: boolean;
  readonly signal: AbortSignal;
}

/** The rest of a `metav1.Status`: what an API server gives, unless it is the answer of a webhook. */
export interface Reason {
  readonly reason?: string;
  readonly details?: object;
}

/** What an API server answers to a patch instead, or anything else that fails. */
export type Refusal =
  readonly [status: number, message: string, rest?: Reason | undefined] | Error | Promise<never> | undefined;

interface Stored {
  metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

const REASONS: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
};

/** A failed answer, as client-node throws it. */
export const answered = (
  code: number,
  message: string,
  rest: Reason = { reason: REASONS[code] ?? '' },
): Error =>
  Object.assign(new Error(message), {
    code,
    headers: {},
    body: JSON.stringify({ kind: 'Status', code, message, ...rest }),
  });

/** An API server in memory, which answers at once: ConfigMaps `app`, and pods that mount them. */
export class MemoryCluster implements ClusterClient {
  /** Every patch that was sent. */
  readonly patches: Patch[] = [];
  refuse: (patch: Patch) => Refusal = () => undefined;
  /** The namespaces in which nobody may patch. */
  readonly forbidden = new Set<string>();
  #version = 1;
  readonly #objects = new Map<string, Stored>();
  readonly #watches = new Set<{ readonly prefix: string; readonly push: (line: string) => void }>();

  /** Adds the ConfigMap of a namespace, and pods that mount it. */
  fill(namespace: string, pods: readonly string[]): void {
    this.change(namespace);
    for (const name of pods) this.putPod(namespace, name);
  }

  putPod(namespace: string, name: string, annotations: Readonly<Record<string, string>> = {}): void {
    const pod = podOf(name, [{ configMap: { name: 'app' } }]);
    this.#put('pods', { ...pod, metadata: this.#metadata(namespace, name, { annotations }) });
  }

  /** Changes the ConfigMap of a namespace. */
  change(namespace: string): void {
    this.#put('configmaps', { metadata: this.#metadata(namespace, 'app', {}) });
  }

  deletePod(namespace: string, name: string): void {
    const key = `pods/${namespace}/${name}`;
    const object = this.#objects.get(key);
    this.#objects.delete(key);
    if (object) this.#tell(key, { type: 'DELETED', object });
  }

  annotation(namespace: string, name: string): string | undefined {
    return this.#objects.get(`pods/${namespace}/${name}`)?.metadata.annotations?.[ANNOTATION];
  }

  async request({ method, path, body, signal }: ClusterRequest): Promise<unknown> {
    const { pathname, searchParams } = new URL(path, 'http://server');
    const [, , , , namespace = '', kind = '', name = ''] = pathname.split('/');
    if (method === 'GET') {
      const items = [...this.#objects].filter(([key]) => key.startsWith(`${kind}/${namespace}/`));
      return {
        metadata: { resourceVersion: String(this.#version) },
        items: items.map(([, object]) => object),
      };
    }
    if (kind === '' && method === 'POST') {
      const { spec } = body as { spec: { resourceAttributes: { namespace: string } } };
      return { status: { allowed: !this.forbidden.has(spec.resourceAttributes.namespace) } };
    }
    const patch = { namespace, name, isDryRun: searchParams.get('dryRun') === 'All', signal };
    this.patches.push(patch);
    const refusal = this.forbidden.has(namespace)
      ? answered(403, `pods "${name}" is forbidden: User "sync" cannot patch resource "pods"`)
      : await this.refuse(patch);
    if (refusal) throw refusal instanceof Error ? refusal : answered(...refusal);
    const pod = this.#objects.get(`pods/${namespace}/${name}`);
    if (!pod) throw answered(404, `pods "${name}" not found`);
    const { metadata } = body as { metadata: { annotations: Record<string, string> } };
    if (!patch.isDryRun) this.#put('pods', { ...pod, metadata: this.#metadata(namespace, name, metadata) });
    return {};
  }

  async *lines({ path, signal }: ClusterRequest): AsyncGenerator<string> {
    const [, , , , namespace = '', kind = ''] = new URL(path, 'http://server').pathname.split('/');
    const lines: string[] = [];
    let wake = (): void => {};
    const push = (line: string): void => {
      lines.push(line);
      wake();
    };
    this.#watches.add({ prefix: `${kind}/${namespace}/`, push });
    signal.addEventListener('abort', () => wake());
    for (;;) {
      while (lines.length > 0) yield* lines.splice(0);
      signal.throwIfAborted();
      await new Promise<void>((resolve) => (wake = resolve));
    }
  }

  #metadata(namespace: string, name: string, rest: object): Stored['metadata'] {
    this.#version += 1;
    return { namespace, name, uid: `uid-${name}`, resourceVersion: String(this.#version), ...rest };
  }

  #put(kind: string, object: Stored): void {
    const { namespace, name } = object.metadata;
    const key = `${kind}/${namespace}/${name}`;
    const type = this.#objects.has(key) ? 'MODIFIED' : 'ADDED';
    this.#objects.set(key, object);
    this.#tell(key, { type, object });
  }

  #tell(key: string, event: object): void {
    for (const { prefix, push } of this.#watches) if (key.startsWith(prefix)) push(JSON.stringify(event));
  }
}
