import type { ComponentHandle } from '../core/telemetry-messages.js';
import { hasMethods } from '../core/options.js';

/** The result for one component. */
export interface HealthCheck {
  readonly component: string;
  readonly name: string;
  readonly live: boolean;
  readonly ready: boolean;
  /** Why the component is not live or not ready; null if it is both. */
  readonly reason: string | null;
}

/** The result of a probe. Plain data without contents. */
export interface Health {
  /** Whether all components are live. */
  readonly live: boolean;
  /** Whether all components are live and ready. */
  readonly ready: boolean;
  readonly checks: readonly HealthCheck[];
}

/**
 * Whether the components are working.
 *
 * | component                         | live if                               | ready if                             |
 * |-----------------------------------|---------------------------------------|--------------------------------------|
 * | `ResilientWatcher`                | a check ended in the last 3 intervals | contents have been read              |
 * | `ConfigLoader`                    | always                                | loaded, and the last reload was good |
 * | `TokenRefresher`                  | always                                | an unexpired token                   |
 * | `TokenFile`, `TlsFiles`           | always                                | an unexpired token or certificate    |
 * | `AtomicVolume`, `VolumePublisher` | always                                | not closed                           |
 * | others                            | always                                | running, unless its page says more   |
 *
 * A blocked event loop answers no probe. A watcher that polls, or whose file is mounted with `subPath`, is live. A
 * component that is closed is not ready. Intervals are measured by the monotonic clock, so a jump of the wall clock
 * does not affect liveness; the first one begins with `start()`. Expiry is judged by the component's own clock.
 * @throws {TypeError} for something that is not a component of this library.
 */
export function healthOf(...components: readonly ComponentHandle[]): Health {
  assertComponents('healthOf', components);
  const checks = components.map(checkOf);
  const live = checks.every((check) => check.live);
  return { live, ready: live && checks.every((check) => check.ready), checks };
}

/** @throws {TypeError} for something that is not a component of this library. */
export function assertComponents(owner: string, components: readonly unknown[]): void {
  if (components.every((component) => hasMethods(component, ['status', 'health']))) return;
  throw new TypeError(
    `${owner}: every argument must be a component of this library, such as a ResilientWatcher`,
  );
}

function checkOf(component: ComponentHandle): HealthCheck {
  const { dead, unready } = component.health();
  return {
    component: component.kind,
    name: component.name,
    live: dead === undefined,
    ready: dead === undefined && unready === undefined,
    reason: dead ?? unready ?? null,
  };
}
