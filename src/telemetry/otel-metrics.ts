import type { Attributes, Meter, Observable, ObservableCallback } from '@opentelemetry/api';

import {
  METRICS,
  metricsOf,
  otelName,
  SECONDS_BUCKETS,
  type GaugeName,
  type Labels,
  type MetricName,
} from './metrics.js';
import { Recorder } from './recorder.js';

/** Records the library's metrics with the instruments of a meter, until the returned function is called. */
export function recordMetrics(meter: Meter): () => void {
  const optionsOf = (name: MetricName) => ({
    unit: METRICS[name].unit,
    description: METRICS[name].help,
  });
  const counters = new Map(
    metricsOf('counter').map((name) => [name, meter.createCounter(otelName(name), optionsOf(name))]),
  );
  const advice = { explicitBucketBoundaries: [...SECONDS_BUCKETS] };
  const histograms = new Map(
    metricsOf('histogram').map((name) => [
      name,
      meter.createHistogram(otelName(name), { ...optionsOf(name), advice }),
    ]),
  );
  const recorder = new Recorder({
    count: (metric, labels, by) => counters.get(metric)?.add(by, attributesOf(labels)),
    record: (metric, seconds, labels) => histograms.get(metric)?.record(seconds, attributesOf(labels)),
  });
  const ends = metricsOf('gauge').map((name) => observeGauge(instrumentOf(meter, name), name, recorder));
  return () => {
    recorder.close();
    for (const end of ends.splice(0)) end();
  };
}

/** Moments and durations become gauges; booleans and counts add up over processes. */
function instrumentOf(meter: Meter, name: GaugeName): Observable {
  const { unit, help: description } = METRICS[name];
  return unit === 's'
    ? meter.createObservableGauge(otelName(name), { unit, description })
    : meter.createObservableUpDownCounter(otelName(name), { unit, description });
}

function observeGauge(instrument: Observable, name: GaugeName, recorder: Recorder): () => void {
  const callback: ObservableCallback = (result) => {
    for (const { labels, value } of recorder.samples(name)) result.observe(value, attributesOf(labels));
  };
  instrument.addCallback(callback);
  return () => {
    instrument.removeCallback(callback);
  };
}

/** Attributes in the namespace of the library, except those with a name in the semantic conventions. */
export function attributesOf(labels: Labels): Attributes {
  const attributes = Object.entries(labels).map(([label, value]) => [
    label === 'error_type' ? 'error.type' : `resilient_watcher.${inSnakeCase(label)}`,
    value,
  ]);
  return Object.fromEntries(attributes) as Attributes;
}

function inSnakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
