import { systemClock } from '../core/clock.js';
import type { ComponentHandle, ErrorSummary } from '../core/telemetry-messages.js';
import { samplesOf } from './gauges.js';
import { LiveComponents } from './live-components.js';
import type { CounterName, GaugeName, HistogramName, Labels, Sample } from './metrics.js';
import { observe, type Operation, type Point, type Subscription } from './observe.js';

/** The destination of counts and durations. */
interface Instruments {
  count(metric: CounterName, labels: Labels, by: number): void;
  record(metric: HistogramName, seconds: number, labels: Labels): void;
}

/**
 * When a label has more values than this, the others are counted together as `other`: names must not create time
 * series without end.
 */
const MAX_LABEL_VALUES = 256;

/** The initial value of a counter: without a first 0, `increase()` misses the first failure. */
const RELOAD_RESULTS = ['accepted', 'unchanged', 'rejected', 'error'];
const WRITE_RESULTS = ['written', 'unchanged', 'error'];
const PUBLISH_RESULTS = ['published', 'unchanged', 'skipped', 'kept', 'error'];

/** Turns messages into counts and durations, and keeps what the gauges are read from. */
export class Recorder {
  readonly #instruments: Instruments;
  readonly #components = new LiveComponents();
  readonly #reloadedAt = new Map<ComponentHandle, number>();
  readonly #values = new Map<string, Set<string>>();
  readonly #subscription: Subscription;

  constructor(instruments: Instruments) {
    this.#instruments = instruments;
    this.#subscription = observe({
      point: (point) => this.#point(point),
      started: (operation) => this.#components.started(operation),
      settled: (operation, durationMs) => this.#settled(operation, durationMs / 1_000),
    });
    for (const result of WRITE_RESULTS) this.#count('writes_total', { result }, 0);
    for (const result of PUBLISH_RESULTS) this.#count('publishes_total', { result }, 0);
  }

  /** The values of a gauge now. */
  samples(name: GaugeName): Sample[] {
    const bounded = (labels: Labels): Labels => this.#bounded(labels);
    return samplesOf(name, { components: this.#components, reloadedAt: this.#reloadedAt, bounded });
  }

  close(): void {
    this.#subscription.close();
  }

  #point(point: Point): void {
    this.#components.point(point);
    const target = point.message.component.name;
    switch (point.name) {
      case 'start':
        this.#begin(point.message.component);
        break;
      case 'close':
        this.#reloadedAt.delete(point.message.component);
        break;
      case 'change': {
        const { component, cause, delayMs } = point.message;
        if (component.kind !== 'ResilientWatcher') break;
        this.#count('changes_total', { target, cause: cause ?? '' });
        if (delayMs !== undefined) this.#record('change_delay_seconds', delayMs / 1_000, { target });
        break;
      }
      case 'restart':
        this.#count('restarts_total', { target, error_type: typeOf(point.message.error) });
        break;
      case 'rejected': {
        const { problems, error } = point.message;
        this.#count('errors_total', { target, error_type: problems?.[0]?.code ?? typeOf(error) });
        break;
      }
      case 'degraded':
      case 'unreadable':
      case 'unhealthy':
      case 'error':
        this.#count('errors_total', { target, error_type: typeOf(point.message.error) });
        break;
      case 'recovered':
      case 'readable':
      case 'warning':
      case 'healthy':
    }
  }

  #begin({ kind, name }: ComponentHandle): void {
    this.#count('errors_total', { target: name, error_type: 'ERR_LISTENER' }, 0);
    if (kind !== 'ConfigLoader') return;
    for (const result of RELOAD_RESULTS) this.#count('config_reloads_total', { loader: name, result }, 0);
  }

  #settled({ name, message }: Operation, seconds: number): void {
    const result = message.error ? 'error' : (message.result ?? '');
    const target = message.component?.name ?? '';
    switch (name) {
      case 'check':
        this.#count('checks_total', { target, cause: message.cause });
        break;
      case 'token.request':
        this.#count('token_requests_total', { target, reason: message.reason, result });
        this.#record('token_request_duration_seconds', seconds, { target });
        break;
      case 'token.delivery':
        this.#count('token_deliveries_total', { target, sink: message.sink, result });
        break;
      case 'config.reload':
        this.#count('config_reloads_total', { loader: target, result });
        if (result === 'accepted' || result === 'unchanged') {
          this.#reloadedAt.set(message.component, systemClock.now());
        }
        break;
      case 'write':
        this.#count('writes_total', { result });
        this.#record('write_duration_seconds', seconds, {});
        break;
      case 'publish':
        this.#count('publishes_total', { result });
        break;
      case 'action':
        this.#count('actions_total', { action: message.action, result });
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

/** The `error.type` of OpenTelemetry: of few values. */
export function typeOf(error: ErrorSummary | undefined): string {
  return error?.code ?? error?.name ?? 'Error';
}
