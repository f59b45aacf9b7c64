import type { Labels, Meter, Metric } from '../core/telemetry/telemetry-definitions.js';
import type { ComponentHandle } from '../core/telemetry/telemetry-messages.js';
import { runningComponents } from '../core/telemetry/telemetry.js';
import { followMetrics, ownLabel, type Sample } from './metrics.js';
import { count, type Operation, type Point, type Subscription } from './observe.js';
import { eventOf } from '../core/telemetry/telemetry-points.js';
import { operationOf } from '../core/telemetry/telemetry-operations.js';

/** Counts, or records a duration in seconds. */
export type Instrument = (value: number, labels: Labels) => void;

interface Instruments {
  /**
   * A metric is known. Packages that are loaded later bring theirs.
   * @param samples the current values of a gauge.
   */
  add(name: string, metric: Metric, samples: () => Sample[]): Instrument | undefined;
}

/**
 * If a label has more values than this, the others are counted together as `other`: names must not create time
 * series without limit.
 */
const MAX_LABEL_VALUES = 256;

/** Turns messages into counts and durations, and keeps the components for the gauges. */
export class Recorder {
  /** Those that run, and have started or published a message. */
  readonly #components = new Set<ComponentHandle>();
  readonly #values = new Map<string, Set<string>>();
  readonly #metrics = new Map<
    string,
    { readonly metric: Metric; readonly instrument: Instrument | undefined }
  >();
  readonly #endMetrics: () => void;
  readonly #subscription: Subscription;

  constructor(instruments: Instruments) {
    this.#endMetrics = followMetrics((name, metric) => {
      const bounded = (labels: Labels): Labels => this.#bounded(labels);
      const samples = (): Sample[] => samplesOf(name, metric, this.#components, bounded);
      this.#metrics.set(name, { metric, instrument: instruments.add(name, metric, samples) });
      for (const labels of metric.initial ?? []) this.#record(name, 0, labels);
    });
    this.#subscription = count({
      point: (point) => this.#point(point),
      started: ({ message }) => this.#add(message.component),
      settled: (operation, durationMs) => this.#settled(operation, durationMs / 1_000),
    });
    for (const component of runningComponents()) {
      this.#add(component);
      this.#begin(component);
    }
  }

  close(): void {
    this.#endMetrics();
    this.#subscription.close();
  }

  #point(point: Point): void {
    const { component } = point.message;
    this.#add(component);
    if (point.name === 'start') this.#begin(component);
    if (point.name === 'close') this.#components.delete(component);
    eventOf(component.kind, point.name)?.measure?.(point.message, this.#meterOf(component, point.name));
  }

  /** @param component absent for plain functions such as `atomicWriteFile`. */
  #meterOf(component: ComponentHandle | undefined, event: string): Meter {
    const { name = '', repeated = [] } = component ?? {};
    return {
      count: (metric, labels, by = 1) => this.#record(metric, by, labels, name),
      record: (metric, seconds, labels = {}) => this.#record(metric, seconds, labels, name),
      error: (type) => {
        if (!repeated.some((one) => one === event)) this.#record('errors', 1, { error_type: type }, name);
      },
    };
  }

  #add(component: ComponentHandle | undefined): void {
    if (!component?.metrics || this.#components.has(component)) return;
    const { state } = component.status();
    if (state !== 'idle' && state !== 'closed') this.#components.add(component);
  }

  #begin(component: ComponentHandle): void {
    const { name } = component;
    this.#record('errors', 0, { error_type: 'ERR_LISTENER' }, name);
    // Those of gauges are read when they are collected.
    for (const { metric, labels, value } of component.metrics?.() ?? [])
      this.#record(metric, value, labels, name);
  }

  #settled(operation: Operation, seconds: number): void {
    const { name, message } = operation;
    const result = message.error ? 'error' : (message.result ?? '');
    const meter = this.#meterOf(message.component, name);
    operationOf(name, message.component)?.measure?.({ ...message, result }, meter, seconds);
  }

  /** @param name of the component, if there is one. */
  #record(id: string, value: number, labels: Labels, name = ''): void {
    const { metric, instrument } = this.#metrics.get(id) ?? {};
    if (metric) instrument?.(value, this.#bounded({ ...ownLabel(metric, name), ...labels }));
  }

  #bounded(labels: Labels): Labels {
    const bounded = Object.entries(labels).map(([label, value]) => {
      const known = this.#values.get(label) ?? new Set();
      this.#values.set(label, known);
      if (known.size < MAX_LABEL_VALUES) known.add(value);
      return [label, known.has(value) ? value : 'other'];
    });
    return Object.fromEntries(bounded) as Labels;
  }
}

/**
 * The samples of one gauge, each set of labels once.
 * @param bounded the labels of a sample; components beyond the limit share their labels.
 */
export function samplesOf(
  name: string,
  gauge: Metric,
  components: Iterable<ComponentHandle>,
  bounded: (labels: Labels) => Labels,
): Sample[] {
  const pick = gauge.of === 'least' ? Math.min : Math.max;
  const samples = new Map<string, Sample>();
  const counted = new Set<string>();
  for (const component of components) {
    for (const { metric, labels, value, item } of component.metrics?.() ?? []) {
      if (metric !== name) continue;
      const all = bounded({ ...ownLabel(gauge, component.name), ...labels });
      const key = JSON.stringify(all);
      const other = samples.get(key)?.value;
      if (item !== undefined) {
        const id = JSON.stringify([key, item]);
        if (!counted.has(id)) samples.set(key, { labels: all, value: (other ?? 0) + value });
        counted.add(id);
      } else {
        samples.set(key, { labels: all, value: other === undefined ? value : pick(other, value) });
      }
    }
  }
  return [...samples.values()];
}
