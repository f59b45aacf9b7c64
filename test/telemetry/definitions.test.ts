/** Events, operations and metrics that a component of another package brings. */
import * as api from '@opentelemetry/api';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import client, { Registry } from 'prom-client';
import { logTo, observe } from 'resilient-watcher';
import { instrument } from 'resilient-watcher/otel';
import { collectMetrics } from 'resilient-watcher/prometheus';
import { expect, onTestFinished, test, vi } from 'vitest';

import type { ComponentTelemetry, TelemetryTable } from '../../src/core/telemetry/telemetry-definitions.js';
import { SampleComponent } from './sample-component.js';

interface Brewed {
  readonly cups: number;
}

/** Tables stay as long as the process: a kind of component that is to be unknown has a name of its own. */
const BREWERY = {
  events: {
    brewed: {
      fields: ['cups'],
      level: 'warn',
      text: ({ cups }) => `${cups} cups are ready`,
      measure: ({ cups }, meter) => meter.count('cups', {}, cups),
    },
  },
  operations: {
    boil: {
      line: ({ result }) => ({ level: 'routine', text: `boiling ${result}` }),
      measure: ({ water, result }, meter, seconds) => meter.record('boiled', seconds, { water, result }),
    },
  },
  metrics: {
    cups: { kind: 'counter', unit: '{cup}', labels: ['target'], help: 'Cups.' },
    boiled: { kind: 'histogram', unit: 's', labels: ['water', 'result'], help: 'Time to boil.' },
  },
} satisfies TelemetryTable<{ brewed: Brewed }, { boil: { readonly water: string } }>;

async function brew(component: SampleComponent): Promise<void> {
  component.emitEvent('brewed', { cups: 3, recipe: 'SECRET' });
  await component.work(
    'boil',
    { water: 'cold' },
    () => Promise.resolve(),
    () => 'hot',
  );
}

test('a log and an observer that were first hear of what a package brings later, and of the listed fields only', async () => {
  const lines: string[] = [];
  const log = (_: object, text: string): void => void lines.push(text);
  using _log = logTo({ debug: log, info: log, warn: log, error: log });
  const seen: unknown[] = [];
  using _observer = observe({
    point: ({ name, message: { component, ...fields } }) => void seen.push([component.name, name, fields]),
    settled: ({ name, message: { component: _, ...fields } }) => void seen.push([name, fields]),
  });
  await brew(new SampleComponent('Brewery', 'late', {}, BREWERY));
  expect(seen).toEqual([
    ['late', 'brewed', { cups: 3 }],
    ['boil', { water: 'cold', result: 'hot' }],
  ]);
  expect(lines).toEqual(['Brewery "late": 3 cups are ready', 'Brewery "late": boiling hot']);
});

test('an event of one kind of component is not published by another kind that has none of this name', () => {
  new SampleComponent('Brewery', 'known', {}, BREWERY);
  const seen = vi.fn();
  using _observer = observe({ point: seen });
  new SampleComponent('Other', 'unknown').emitEvent('brewed', { cups: 3 });
  expect(seen).not.toHaveBeenCalled();
});

test('metrics that were collected before have those of the package, until they are closed', async () => {
  const registry = new Registry();
  const metrics = collectMetrics({ client, registry });
  const table: ComponentTelemetry = {
    ...BREWERY,
    events: {
      brewed: { ...BREWERY.events.brewed, measure: (_, meter) => meter.count('cups_of_prometheus', {}, 3) },
    },
    operations: {
      boil: {
        measure: ({ result }, meter, seconds) =>
          meter.record('boiled_by_prometheus', seconds, { result, water: 'cold' }),
      },
    },
    metrics: { cups_of_prometheus: BREWERY.metrics.cups, boiled_by_prometheus: BREWERY.metrics.boiled },
  };
  await brew(new SampleComponent('PrometheusBrewery', 'scraped', {}, table));
  const text = await registry.metrics();
  expect(text).toContain('resilient_watcher_cups_of_prometheus_total{target="scraped"} 3');
  expect(text).toContain('resilient_watcher_boiled_by_prometheus_seconds_count{result="hot",water="cold"} 1');
  metrics.close();
  expect(registry.getMetricsAsArray()).toEqual([]);
});

test('a metric of a package that the registry has already is a process warning, and its component works', async () => {
  const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  onTestFinished(() => warnings.mockRestore());
  const registry = new Registry();
  new client.Counter({ name: 'resilient_watcher_taken_total', help: 'own', registers: [registry] });
  using _metrics = collectMetrics({ client, registry });
  const metrics = { taken: BREWERY.metrics.cups };
  const component = new SampleComponent('TakenBrewery', 'taken', {}, { metrics });
  await component.start();
  expect(String(warnings.mock.calls[0]?.[0])).toContain('resilient_watcher_taken_total');
});

test('spans are made of operations that a package brings later', async () => {
  const exporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  using _instrumented = instrument({ api, tracerProvider });
  const operations = { stir: {} };
  const component = new SampleComponent('StirringBrewery', 'traced', {}, { operations });
  await component.work(
    'stir',
    {},
    () => Promise.resolve(),
    () => 'stirred',
  );
  expect(exporter.getFinishedSpans().map(({ name }) => name)).toEqual(['resilient_watcher.stir']);
});
