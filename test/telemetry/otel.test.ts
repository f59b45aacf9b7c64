import * as api from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type MetricData,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { expect, onTestFinished, test } from 'vitest';

import { TokenError } from '../../src/core/errors/token-error.js';
import { Outcome } from '../../src/core/scheduling/outcome.js';
import { followMetrics, otelName } from '../../src/telemetry/metrics.js';
import { instrument } from '../../src/telemetry/otel.js';
import { SampleComponent, WATCHING } from './sample-component.js';

function instrumented() {
  const spanExporter = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spanExporter)] });
  const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({
    exporter: metricExporter,
    exportIntervalMillis: 2 ** 30,
  });
  const meterProvider = new MeterProvider({ readers: [reader] });
  const subscription = instrument({ api, meterProvider, tracerProvider });
  onTestFinished(async () => {
    subscription.close();
    await meterProvider.shutdown();
  });
  return {
    close: () => subscription.close(),
    spans: () => spanExporter.getFinishedSpans(),
    async metrics(): Promise<Map<string, MetricData>> {
      metricExporter.reset();
      await reader.forceFlush();
      const [resource] = metricExporter.getMetrics();
      const all = resource?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? [];
      return new Map(all.map((metric) => [metric.descriptor.name, metric]));
    },
  };
}

test('metrics have OpenTelemetry names, UCUM units and attributes', async () => {
  const { metrics } = instrumented();
  const watcher = new SampleComponent('ResilientWatcher', 'policy', WATCHING);
  await watcher.start();
  watcher.emitEvent('change', { cause: 'fs', delayMs: 2 });
  watcher.emitEvent('error', new TypeError('no'));

  const exported = await metrics();
  const shown = (name: string) => {
    const metric = exported.get(`resilient_watcher.${name}`);
    const points = metric?.dataPoints
      .filter(({ attributes }) => attributes['resilient_watcher.target'] === 'policy')
      .map(({ attributes, value }) => [attributes, value]);
    return { unit: metric?.descriptor.unit, points };
  };
  const target = { 'resilient_watcher.target': 'policy' };
  expect(shown('changes')).toEqual({
    unit: '{change}',
    points: [[{ ...target, 'resilient_watcher.cause': 'fs' }, 1]],
  });
  expect(shown('errors')).toEqual({
    unit: '{error}',
    points: [
      [{ ...target, 'error.type': 'ERR_LISTENER' }, 0],
      [{ ...target, 'error.type': 'TypeError' }, 1],
    ],
  });
  expect(shown('change.delay')).toMatchObject({
    unit: 's',
    points: [[target, { count: 1, sum: 0.002 }]],
  });
  expect(shown('last_change.timestamp')).toEqual({ unit: 's', points: [[target, 1_700_000_000]] });
  expect(shown('status').points).toContainEqual([{ ...target, 'resilient_watcher.state': 'watching' }, 1]);
  const names: string[] = [];
  followMetrics((name) => names.push(otelName(name)))();
  expect(names).toEqual(expect.arrayContaining([...exported.keys()]));
});

test('an operation is a span with its result or its error, and one within another is its child', async () => {
  const { spans } = instrumented();
  const refresher = new SampleComponent('TokenRefresher', 'vault');
  const error = new TokenError('ERR_TOKEN_FORBIDDEN', 'May not');
  await refresher.work(
    'token.delivery',
    { sink: 'file' },
    () =>
      refresher.work(
        'write',
        { path: '/run/token' },
        () => Promise.resolve(),
        () => 'written',
      ),
    () => 'delivered',
  );
  const refused = refresher.work(
    'token.request',
    { reason: 'timer' },
    () => Promise.reject(error),
    () => 'issued',
  );
  await expect(refused).rejects.toBe(error);

  const [write, delivery, request] = spans();
  expect(write?.name).toBe('resilient_watcher.write');
  expect(write?.parentSpanContext?.spanId).toBe(delivery?.spanContext().spanId);
  expect(delivery?.attributes).toEqual({
    'resilient_watcher.component': 'TokenRefresher',
    'resilient_watcher.target': 'vault',
    'resilient_watcher.sink': 'file',
    'resilient_watcher.result': 'delivered',
  });
  expect(request?.status).toEqual({ code: api.SpanStatusCode.ERROR, message: 'May not' });
  expect(request?.attributes['error.type']).toBe('ERR_TOKEN_FORBIDDEN');
});

test('only checks that found a change have a span', async () => {
  const { spans } = instrumented();
  const watcher = new SampleComponent('ResilientWatcher', 'policy', WATCHING);
  const check = (result: string) =>
    watcher.work(
      'check',
      { cause: 'fs' },
      () => Promise.resolve(),
      () => result,
    );
  await check('unchanged');
  await check('changed');
  expect(spans().map(({ name, attributes }) => [name, attributes['resilient_watcher.result']])).toEqual([
    ['resilient_watcher.check', 'changed'],
  ]);
});

test('the span of a check that found a change begins with the check, although it is created after it', async () => {
  const { spans } = instrumented();
  const watcher = new SampleComponent('ResilientWatcher', 'policy', WATCHING);
  const began = Date.now();
  const end = new Outcome<void>();
  const check = watcher.work(
    'check',
    { cause: 'fs' },
    () => end.promise,
    () => 'changed',
  );
  // Until the clock that spans are dated by has moved.
  await expect.poll(() => Date.now()).toBeGreaterThan(began + 5);
  const later = Date.now();
  end.resolve();
  await check;
  const [span] = spans();
  const [seconds = 0, nanoseconds = 0] = span?.startTime ?? [];
  expect(seconds * 1_000 + nanoseconds / 1_000_000).toBeLessThan(later);
});

test('without the API, or with another object in its place, the message says what to install', () => {
  expect(() => instrument({} as never)).toThrow(
    /"api" must be the module @opentelemetry\/api \(npm install @opentelemetry\/api/,
  );
  expect(() => instrument({ api: {} as never })).toThrow(TypeError);
});

test('a second subscription of a meter provider is refused, as it would count everything twice', () => {
  const meterProvider = new MeterProvider();
  const first = instrument({ api, meterProvider });
  onTestFinished(() => first.close());
  expect(() => instrument({ api, meterProvider })).toThrow(
    new TypeError(
      'instrument: the meter provider has these metrics already; close() the earlier subscription or use another provider',
    ),
  );
  instrument({ api }).close();
  first.close();
  const second = instrument({ api, meterProvider });
  onTestFinished(() => second.close());
  // It has been closed already, and the second one goes on.
  first.close();
  expect(() => instrument({ api, meterProvider })).toThrow(/has these metrics already/);
});

test('after close() no component is asked for its gauges', async () => {
  const { metrics, close } = instrumented();
  const watcher = new SampleComponent('ResilientWatcher', 'policy', WATCHING);
  await watcher.start();
  // The SDK itself goes on to export what it collected last.
  const lastChange = async (): Promise<unknown> =>
    (await metrics()).get('resilient_watcher.last_change.timestamp')?.dataPoints[0]?.value;
  expect(await lastChange()).toBe(1_700_000_000);
  close();
  watcher.details = { ...WATCHING, lastChangeAt: 1_800_000_000_000 };
  expect(await lastChange()).toBe(1_700_000_000);
});

test('without a meter provider, it is that of the API that is used once', () => {
  const first = instrument({ api });
  onTestFinished(() => first.close());
  expect(() => instrument({ api })).toThrow(/has these metrics already/);
});
