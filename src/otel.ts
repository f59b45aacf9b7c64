/** The entry point "resilient-watcher/otel". The application passes its own `@opentelemetry/api`. */
import './index.js';

export { instrument, type InstrumentOptions } from './telemetry/otel.js';
export type { Subscription } from './telemetry/observe.js';
