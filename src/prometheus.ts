/** The entry point "resilient-watcher/prometheus". The application passes its own `prom-client`. */
export { collectMetrics, type CollectMetricsOptions } from './telemetry/prometheus.js';
export type { Subscription } from './telemetry/observe.js';
