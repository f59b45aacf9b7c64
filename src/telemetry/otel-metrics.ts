import type { Attributes, Meter, ObservableCallback } from '@opentelemetry/api';

import type { Labels, Metric } from '../core/telemetry/telemetry-definitions.js';
import { otelName, SECONDS_BUCKETS, type Sample } from './metrics.js';
import { Recorder } from './recorder.js';

/** Records the metrics with the instruments of a meter, until the returned function is called. */
export function recordMetrics(meter: Meter): () => void {
  const ends: (() => void)[] = [];
  const recorder = new Recorder({
    add(name, metric, samples) {
      const options = { unit: metric.unit, description: metric.help };
      const advice = { explicitBucketBoundaries: [...SECONDS_BUCKETS] };
      if (metric.kind === 'gauge') return void ends.push(observeGauge(meter, name, metric, samples));
      if (metric.kind === 'counter') {
        const counter = meter.createCounter(otelName(name), options);
        return (by, labels) => counter.add(by, attributesOf(labels));
      }
      const histogram = meter.createHistogram(otelName(name), { ...options, advice });
      return (seconds, labels) => histogram.record(seconds, attributesOf(labels));
    },
  });
  return () => {
    recorder.close();
    for (const end of ends.splice(0)) end();
  };
}

/** Moments and durations become gauges; booleans and counts add up over processes. */
function observeGauge(
  meter: Meter,
  name: string,
  { unit, help: description }: Metric,
  samples: () => Sample[],
): () => void {
  const instrument =
    unit === 's'
      ? meter.createObservableGauge(otelName(name), { unit, description })
      : meter.createObservableUpDownCounter(otelName(name), { unit, description });
  const callback: ObservableCallback = (result) => {
    for (const { labels, value } of samples()) result.observe(value, attributesOf(labels));
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
