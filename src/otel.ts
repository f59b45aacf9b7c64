/** The entry point "resilient-watcher/otel". The user gives his own `@opentelemetry/api`. */
export { instrument, type InstrumentOptions } from './telemetry/otel.js';
export type { Subscription } from './telemetry/observe.js';
