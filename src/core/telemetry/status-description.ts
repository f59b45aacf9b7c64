/** What health checks and metrics say about a component, told from its status by the component itself. */
import type { ComponentTelemetry } from './telemetry-definitions.js';

/** Why a component is not live or not ready; empty if it is both. */
export interface Verdict {
  readonly dead?: string | undefined;
  readonly unready?: string | undefined;
}

/** A value of a gauge, or the 0 with which a counter begins. */
export interface MetricSample {
  /** The name in `telemetry/metrics.ts`. */
  readonly metric: string;
  /** Without the name of the component. */
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** What is counted, if several components may count the same thing, which counts once. */
  readonly item?: string;
}

/** Passed to the constructor of `Component`. */
export interface StatusDescription<Status> {
  /** Whether the component works without `start()`, or is idle between tasks. Default false. */
  readonly worksIdle?: boolean;
  /** The verdict about a component that is neither idle nor closed. Default: live and ready. */
  readonly health?: (status: Status) => Verdict;
  /** Default: none. */
  readonly metrics?: (status: Status) => Iterable<MetricSample>;
  /** The events, operations and metrics that no component of the library has. Default: none. */
  readonly telemetry?: ComponentTelemetry;
}

export function flag(metric: string, isOn: boolean, labels: MetricSample['labels'] = {}): MetricSample {
  return { metric, labels, value: isOn ? 1 : 0 };
}

/** A moment or a duration in seconds, if there is one. */
export function* seconds(metric: string, ms: number | null | undefined): Iterable<MetricSample> {
  if (typeof ms === 'number' && Number.isFinite(ms)) yield { metric, labels: {}, value: ms / 1_000 };
}

export function expiryVerdict(isAvailable: boolean, isExpired: boolean): Verdict {
  if (!isAvailable) return { unready: 'no valid contents have been read yet' };
  return { unready: isExpired ? 'it has expired' : undefined };
}
