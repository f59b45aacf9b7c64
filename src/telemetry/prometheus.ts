import type * as promClient from 'prom-client';
import type { Registry } from 'prom-client';

import { matching, port, resolveOptions } from '../core/options.js';
import { METRICS, metricsOf, SECONDS_BUCKETS } from './metrics.js';
import type { Subscription } from './observe.js';
import { Recorder } from './recorder.js';

/** Options of `collectMetrics`. */
export interface CollectMetricsOptions {
  /** Your `prom-client` (15): `import client from 'prom-client'`. */
  readonly client: Pick<typeof promClient, 'Counter' | 'Gauge' | 'Histogram'>;
  /** Where the metrics are registered. Default: the client's own `register`. */
  readonly registry?: Registry | undefined;
}

const PREFIX = 'resilient_watcher_';

const CLIENT = 'the prom-client module (npm install prom-client; import client from "prom-client")';

const isClient = (value: unknown): boolean =>
  ['Counter', 'Gauge', 'Histogram', 'register'].every(
    (name) => typeof (Object(value) as Record<string, unknown>)[name] !== 'undefined',
  );

const OPTIONS = {
  client: matching<typeof promClient | undefined>(undefined, CLIENT, isClient),
  registry: port<Registry | (undefined & object)>(undefined as never, 'registerMetric', 'getSingleMetric'),
};

/**
 * Registers the library's metrics with `prom-client`, for every component of this process, and updates them until it is
 * closed. Closing removes them from the registry.
 *
 * ```ts
 * import client from 'prom-client';
 * collectMetrics({ client, registry: client.register });
 * ```
 * @throws {TypeError} for a wrong option, or a registry that has these metrics already.
 */
export function collectMetrics(options: CollectMetricsOptions): Subscription {
  const { client, registry } = checked(options);
  const registers = [registry];
  const named = <N extends keyof typeof METRICS>(name: N) => {
    const { help, labels } = METRICS[name];
    return { name: PREFIX + name, help, labelNames: [...labels], registers };
  };
  const counters = new Map(metricsOf('counter').map((name) => [name, new client.Counter(named(name))]));
  const histograms = new Map(
    metricsOf('histogram').map((name) => [
      name,
      new client.Histogram({ ...named(name), buckets: [...SECONDS_BUCKETS] }),
    ]),
  );
  const recorder = new Recorder({
    count: (metric, labels, by) => counters.get(metric)?.inc(labels, by),
    record: (metric, seconds, labels) => histograms.get(metric)?.observe(labels, seconds),
  });
  for (const name of metricsOf('gauge')) {
    new client.Gauge({
      ...named(name),
      collect() {
        this.reset();
        for (const { labels, value } of recorder.samples(name)) this.set(labels, value);
      },
    });
  }
  const close = (): void => {
    recorder.close();
    for (const name of Object.keys(METRICS)) registry.removeSingleMetric(PREFIX + name);
  };
  return { close, [Symbol.dispose]: close };
}

function checked(options: CollectMetricsOptions): { client: typeof promClient; registry: Registry } {
  const { client, registry } = resolveOptions('collectMetrics', options, OPTIONS);
  if (!client) throw new TypeError(`collectMetrics: option "client" must be ${CLIENT}, got undefined`);
  const register = registry ?? client.register;
  if (register.getSingleMetric(`${PREFIX}changes_total`)) {
    throw new TypeError(
      'collectMetrics: the registry has these metrics already; close() the earlier subscription or use another registry',
    );
  }
  return { client, registry: register };
}
