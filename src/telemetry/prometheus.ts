import type * as promClient from 'prom-client';
import type { Gauge, Registry } from 'prom-client';

import { matching, port, required, resolveOptions } from '../core/options/options.js';
import { METRICS, prometheusName, SECONDS_BUCKETS, type Sample } from './metrics.js';
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
  client: required(matching<typeof promClient | undefined>(undefined, CLIENT, isClient)),
  registry: port<Registry | undefined>(undefined, 'registerMetric', 'getSingleMetric', 'removeSingleMetric'),
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
  const { client, registry = client.register } = resolveOptions('collectMetrics', options, OPTIONS);
  if (registry.getSingleMetric(prometheusName('changes', METRICS.changes))) {
    throw new TypeError(
      'collectMetrics: the registry already has these metrics; close() the earlier subscription or use another registry',
    );
  }
  const registers = [registry];
  const own = new Map<string, unknown>();
  const recorder = new Recorder({
    add(id, metric, samples) {
      const name = prometheusName(id, metric);
      const about = { name, help: metric.help, labelNames: [...metric.labels], registers };
      const isGauge = metric.kind === 'gauge';
      const made = isGauge
        ? new client.Gauge({ ...about, collect: collecting(samples) })
        : metric.kind === 'counter'
          ? new client.Counter(about)
          : new client.Histogram({ ...about, buckets: [...SECONDS_BUCKETS] });
      own.set(name, registry.getSingleMetric(name));
      if (isGauge) return undefined;
      return (value, labels) => ('observe' in made ? made.observe(labels, value) : made.inc(labels, value));
    },
  });
  const close = (): void => {
    recorder.close();
    // After a clear() of the registry, they may be those of a successor.
    for (const [name, metric] of own) {
      if (registry.getSingleMetric(name) === metric) registry.removeSingleMetric(name);
    }
  };
  return { close, [Symbol.dispose]: close };
}

function collecting(samples: () => Sample[]) {
  return function (this: Gauge): void {
    this.reset();
    for (const { labels, value } of samples()) this.set(labels, value);
  };
}
