import type * as promClient from 'prom-client';
import type { Registry } from 'prom-client';

import { hasMethods, matching, resolveOptions } from '../core/options.js';
import {
  METRICS,
  metricNames,
  metricsOf,
  prometheusName,
  SECONDS_BUCKETS,
  type MetricName,
} from './metrics.js';
import type { Subscription } from './observe.js';
import { Recorder } from './recorder.js';

/** Options of `collectMetrics`. */
export interface CollectMetricsOptions {
  /** Your `prom-client` (15): `import client from 'prom-client'`. */
  readonly client: Pick<typeof promClient, 'Counter' | 'Gauge' | 'Histogram'>;
  /** Where the metrics are registered. Default: the client's own `register`. */
  readonly registry?: Registry | undefined;
}

const CLIENT = 'the prom-client module (npm install prom-client; import client from "prom-client")';

const isClient = (value: unknown): boolean =>
  ['Counter', 'Gauge', 'Histogram', 'register'].every(
    (name) => typeof (Object(value) as Record<string, unknown>)[name] !== 'undefined',
  );

const OPTIONS = {
  client: matching<typeof promClient | undefined>(undefined, CLIENT, isClient),
  registry: matching<Registry | undefined>(
    undefined,
    'an object with registerMetric, getSingleMetric, removeSingleMetric',
    (value) => hasMethods(value, ['registerMetric', 'getSingleMetric', 'removeSingleMetric']),
  ),
};

/**
 * Registers the library's metrics with `prom-client`, for every component of this process, and updates them until the
 * result is closed. Closing it removes them from the registry.
 *
 * ```ts
 * import client from 'prom-client';
 * collectMetrics({ client, registry: client.register });
 * ```
 * @throws {TypeError} for a wrong option, or a registry that already has these metrics.
 */
export function collectMetrics(options: CollectMetricsOptions): Subscription {
  const { client, registry } = checked(options);
  const registers = [registry];
  const named = (name: MetricName) => {
    const { help, labels } = METRICS[name];
    return { name: prometheusName(name), help, labelNames: [...labels], registers };
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
  const registered = (name: MetricName): unknown => registry.getSingleMetric(prometheusName(name));
  const own = new Map(metricNames.map((name) => [name, registered(name)]));
  const close = (): void => {
    recorder.close();
    // After a clear() of the registry, they may be those of a successor.
    for (const [name, metric] of own) {
      if (registered(name) === metric) registry.removeSingleMetric(prometheusName(name));
    }
  };
  return { close, [Symbol.dispose]: close };
}

function checked(options: CollectMetricsOptions): { client: typeof promClient; registry: Registry } {
  const { client, registry } = resolveOptions('collectMetrics', options, OPTIONS);
  if (!client) throw new TypeError(`collectMetrics: option "client" must be ${CLIENT}, got undefined`);
  const register = registry ?? client.register;
  if (register.getSingleMetric(prometheusName('changes'))) {
    throw new TypeError(
      'collectMetrics: the registry already has these metrics; close() the earlier subscription or use another registry',
    );
  }
  return { client, registry: register };
}
