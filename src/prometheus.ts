/** The entry point "resilient-watcher/prometheus". The application passes its own `prom-client`. */
import './index.js';

export { collectMetrics, type CollectMetricsOptions } from './telemetry/prometheus.js';
export type { Subscription } from './telemetry/observe.js';
