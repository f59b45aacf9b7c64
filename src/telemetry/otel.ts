import type * as openTelemetry from '@opentelemetry/api';
import type { MeterProvider, TracerProvider } from '@opentelemetry/api';

import { matching, port, required, resolveOptions } from '../core/options/options.js';
import { processState } from '../core/process-state.js';
import { recordMetrics } from './otel-metrics.js';
import { recordSpans } from './otel-spans.js';
import type { Subscription } from './observe.js';

/** Options of `instrument`. */
export interface InstrumentOptions {
  /** Your `@opentelemetry/api` (1.9 or later): `import * as api from '@opentelemetry/api'`. */
  readonly api: typeof openTelemetry;
  /** Creates the instruments. Default: the provider registered with the API. */
  readonly meterProvider?: MeterProvider | undefined;
  /** Creates the tracer. Default: the provider registered with the API. */
  readonly tracerProvider?: TracerProvider | undefined;
}

const SCOPE = 'resilient-watcher';
const API =
  'the module @opentelemetry/api (npm install @opentelemetry/api; import * as api from "@opentelemetry/api")';

const isApi = (value: unknown): boolean =>
  ['trace', 'metrics', 'context', 'SpanStatusCode'].every(
    (name) => (Object(value) as Record<string, unknown>)[name] !== undefined,
  );

const OPTIONS = {
  api: required(matching<typeof openTelemetry | undefined>(undefined, API, isApi)),
  meterProvider: port<MeterProvider | undefined>(undefined, 'getMeter'),
  tracerProvider: port<TracerProvider | undefined>(undefined, 'getTracer'),
};

/** The meter providers that record the metrics. A second recorder would count everything twice. */
const recording = processState('meters', () => new WeakSet<MeterProvider>());

/**
 * Records metrics and spans of every component of this process with OpenTelemetry, until the result is closed. Register
 * the SDK first.
 *
 * ```ts
 * import * as api from '@opentelemetry/api';
 * instrument({ api });
 * ```
 * @throws {TypeError} for a wrong option, or a meter provider that records these metrics already.
 */
export function instrument(options: InstrumentOptions): Subscription {
  const { api, meterProvider, tracerProvider } = resolveOptions('instrument', options, OPTIONS);
  const meters = meterProvider ?? api.metrics.getMeterProvider();
  const tracers = tracerProvider ?? api.trace;
  if (recording().has(meters)) {
    throw new TypeError(
      'instrument: the meter provider has these metrics already; close() the earlier subscription or use another provider',
    );
  }
  const ends = [recordMetrics(meters.getMeter(SCOPE)), recordSpans(api, tracers.getTracer(SCOPE))];
  recording().add(meters);
  const close = (): void => {
    if (ends.length > 0) recording().delete(meters);
    for (const end of ends.splice(0)) end();
  };
  return { close, [Symbol.dispose]: close };
}
