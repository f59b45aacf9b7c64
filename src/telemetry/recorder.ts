import type { ComponentHandle } from '../core/telemetry-messages.js';
import { runningComponents } from '../core/telemetry.js';
import { ownLabel, samplesOf } from './gauges.js';
import {
  metricsOf,
  type CounterName,
  type GaugeName,
  type HistogramName,
  type Labels,
  type Sample,
} from './metrics.js';
import { count, type Operation, type Point, type Subscription } from './observe.js';
import { measure } from './point-events.js';

/** The destination of counts and durations. */
interface Instruments {
  count(metric: CounterName, labels: Labels, by: number): void;
  record(metric: HistogramName, seconds: number, labels: Labels): void;
}

/**
 * If a label has more values than this, the others are counted together as `other`: names must not create time
 * series without limit.
 */
const MAX_LABEL_VALUES = 256;

/** The initial value of a counter: without an initial 0, `increase()` misses the first failure. */
const WRITE_RESULTS = ['written', 'unchanged', 'error'];
const PUBLISH_RESULTS = ['published', 'unchanged', 'skipped', 'kept', 'error'];

/** Turns messages into counts and durations, and keeps the components for the gauges. */
export class Recorder {
  readonly #instruments: Instruments;
  /** Those that run, and have started or published a message. */
  readonly #components = new Set<ComponentHandle>();
  readonly #values = new Map<string, Set<string>>();
  readonly #subscription: Subscription;

  constructor(instruments: Instruments) {
    this.#instruments = instruments;
    this.#subscription = count({
      point: (point) => this.#point(point),
      started: ({ message }) => this.#add(message.component),
      settled: (operation, durationMs) => this.#settled(operation, durationMs / 1_000),
    });
    for (const result of WRITE_RESULTS) this.#count('writes', { result }, 0);
    for (const result of PUBLISH_RESULTS) this.#count('publishes', { result }, 0);
    for (const component of runningComponents()) {
      this.#add(component);
      this.#begin(component);
    }
  }

  /** The current values of a gauge. */
  samples(name: GaugeName): Sample[] {
    const bounded = (labels: Labels): Labels => this.#bounded(labels);
    return samplesOf(name, this.#components, bounded);
  }

  close(): void {
    this.#subscription.close();
  }

  #point(point: Point): void {
    const { component } = point.message;
    const { name: target, repeated } = component;
    this.#add(component);
    if (point.name === 'start') this.#begin(component);
    if (point.name === 'close') this.#components.delete(component);
    measure(point, {
      count: (metric, labels, by) => this.#count(metric, { target, ...labels }, by),
      record: (metric, seconds) => this.#record(metric, seconds, { target }),
      error: (type) => {
        if (!repeated?.includes(point.name)) this.#count('errors', { target, error_type: type });
      },
    });
  }

  #add(component: ComponentHandle | undefined): void {
    if (!component?.metrics || this.#components.has(component)) return;
    const { state } = component.status();
    if (state !== 'idle' && state !== 'closed') this.#components.add(component);
  }

  #begin(component: ComponentHandle): void {
    this.#count('errors', { target: component.name, error_type: 'ERR_LISTENER' }, 0);
    for (const { metric, labels, value } of component.metrics?.() ?? []) {
      const counter = metricsOf('counter').find((name) => name === metric);
      if (counter) this.#count(counter, { ...ownLabel(counter, component.name), ...labels }, value);
    }
  }

  #settled({ name, message }: Operation, seconds: number): void {
    const result = message.error ? 'error' : (message.result ?? '');
    const target = message.component?.name ?? '';
    switch (name) {
      case 'check':
        this.#count('checks', { target, cause: message.cause });
        break;
      case 'token.request':
        this.#count('token.requests', { target, reason: message.reason, result });
        this.#record('token.request.duration', seconds, { target });
        break;
      case 'token.delivery':
        this.#count('token.deliveries', { target, sink: message.sink, result });
        break;
      case 'config.reload':
        this.#count('config.reloads', { loader: target, result });
        break;
      case 'write':
        this.#count('writes', { result });
        this.#record('write.duration', seconds, {});
        break;
      case 'publish':
        this.#count('publishes', { result });
        break;
      case 'action':
        this.#count('actions', { action: message.action, result });
        break;
    }
  }

  #count(metric: CounterName, labels: Labels, by = 1): void {
    this.#instruments.count(metric, this.#bounded(labels), by);
  }

  #record(metric: HistogramName, seconds: number, labels: Labels): void {
    this.#instruments.record(metric, seconds, this.#bounded(labels));
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
