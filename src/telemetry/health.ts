import type { ComponentHandle } from '../core/telemetry-messages.js';
import { hasMethods } from '../core/options.js';
import type { Statuses } from './status-of.js';

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

/** Why a component is not live or not ready; undefined if it is. */
interface Verdict {
  readonly dead?: string | undefined;
  readonly unready?: string | undefined;
}

/** A watcher that has missed this many checks in a row has stopped checking. */
const MISSED_CHECKS = 3;

/** Components that work without `start()`, or are idle between tasks. */
const NEED_NO_START: ReadonlySet<string> = new Set(['ReloadAction', 'AtomicVolume', 'VolumePublisher']);

/**
 * Whether the components are working.
 *
 * | component                         | live if                               | ready if                             |
 * |-----------------------------------|---------------------------------------|--------------------------------------|
 * | `ResilientWatcher`                | a check ended in the last 3 intervals | contents have been read              |
 * | `ConfigLoader`                    | always                                | loaded, and the last reload was good |
 * | `TokenRefresher`                  | always                                | healthy, with an unexpired token     |
 * | `TokenFile`, `TlsFiles`           | always                                | an unexpired token or certificate    |
 * | `ReloadAction`                    | always                                | the last action, if any, succeeded   |
 * | `AtomicVolume`, `VolumePublisher` | always                                | not closed                           |
 * | others                            | always                                | running                              |
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
  if (components.every((component) => hasMethods(component, ['status']))) return;
  throw new TypeError(
    `${owner}: every argument must be a component of this library, such as a ResilientWatcher`,
  );
}

function checkOf(component: ComponentHandle): HealthCheck {
  const { state } = component.status();
  const isIdle = state === 'idle' && !NEED_NO_START.has(component.kind);
  const isRunning = !isIdle && state !== 'closed';
  const rule = RULES[component.kind as keyof Statuses] as Rule<object> | undefined;
  const { dead, unready } = isRunning ? (rule?.(component.status()) ?? {}) : { unready: `it is ${state}` };
  return {
    component: component.kind,
    name: component.name,
    live: dead === undefined,
    ready: dead === undefined && unready === undefined,
    reason: dead ?? unready ?? null,
  };
}

type Rule<Status> = (status: Status) => Verdict;

/** The rules for running components, by kind. */
const RULES: { readonly [K in keyof Statuses]: Rule<Statuses[K]> } = {
  ResilientWatcher({ sinceLastCheckMs, checkIntervalMs, checks, changes, target }) {
    if (checkIntervalMs !== null && (sinceLastCheckMs ?? 0) > MISSED_CHECKS * checkIntervalMs) {
      const ago = `${Math.round(sinceLastCheckMs ?? 0)} ms ago`;
      return { dead: checks > 0 ? `the last check ended ${ago}` : `the first check began ${ago}` };
    }
    return {
      unready:
        changes > 0 ? undefined : `nothing has been seen yet: the target is ${target ?? 'not checked'}`,
    };
  },
  ConfigLoader({ loadedAt, sources }) {
    if (loadedAt === null) return { unready: 'no configuration has been loaded yet' };
    const rejected = sources.filter(({ state }) => state === 'rejected').map(({ name }) => name);
    return { unready: rejected.length > 0 ? `rejected: ${rejected.join(', ')}` : undefined };
  },
  TokenRefresher({ healthy, lastError, lastMintAt }) {
    if (lastMintAt === null) return { unready: 'there is no token yet' };
    return { unready: healthy ? undefined : `unhealthy: ${lastError?.code ?? 'the token has expired'}` };
  },
  TokenFile: ({ available, stale }) => expiryVerdict(available, stale),
  TlsFiles: ({ available, expired }) => expiryVerdict(available, expired),
  ReloadAction({ lastSuccessful, lastError }) {
    const isBad = lastSuccessful === false;
    return { unready: isBad ? `the last action failed: ${lastError?.code ?? 'interrupted'}` : undefined };
  },
};

function expiryVerdict(isAvailable: boolean, isExpired: boolean): Verdict {
  if (!isAvailable) return { unready: 'no valid contents have been read yet' };
  return { unready: isExpired ? 'it has expired' : undefined };
}
