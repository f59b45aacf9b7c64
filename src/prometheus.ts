/** The entry point "resilient-watcher/prometheus". The user gives his own `prom-client`. */
export { collectMetrics, type CollectMetricsOptions } from './telemetry/prometheus.js';
export type { Subscription } from './telemetry/observe.js';
