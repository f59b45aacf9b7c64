import { systemClock } from '../core/clock.js';
import type { ComponentHandle } from '../core/telemetry-messages.js';
import { hasMethods } from '../core/options.js';
import { statusOf } from './status-of.js';

/** The result for one component. */
export interface HealthCheck {
  readonly component: string;
  readonly name: string;
  readonly live: boolean;
  readonly ready: boolean;
  /** Why it is not live or not ready; null when it is both. */
  readonly reason: string | null;
}

/** The result of a probe. Plain data without contents. */
export interface Health {
  /** All are live. */
  readonly live: boolean;
  /** All are live and ready. */
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

const RULES: readonly ((component: ComponentHandle) => Verdict | undefined)[] = [
  watcherVerdict,
  configVerdict,
  refresherVerdict,
  expiryVerdict,
  actionVerdict,
];

/** These work without `start()`, or are idle between tasks. */
const NEED_NO_START: ReadonlySet<string> = new Set(['ReloadAction', 'AtomicVolume', 'VolumePublisher']);

/**
 * Whether the components are working.
 *
 * | component          | live                                                       | ready                                       |
 * |--------------------|------------------------------------------------------------|---------------------------------------------|
 * | `ResilientWatcher` | last check ended within 3 × the interval between checks    | contents were seen                          |
 * | `ConfigLoader`     | always                                                     | loaded, and the last reload was good        |
 * | `TokenRefresher`   | always                                                     | healthy, and the token has not expired      |
 * | `TokenFile`, `TlsFiles` | always                                                | a token or certificate that has not expired |
 * | `ReloadAction`     | always                                                     | the last action succeeded, if there was one |
 * | `AtomicVolume`, `VolumePublisher` | always                                      | not closed                                  |
 * | others             | always                                                     | running                                     |
 *
 * A blocked event loop answers no probe. A watcher that polls, or whose file is mounted with `subPath`, is live. A
 * component that is closed is not ready. Intervals are measured by the monotonic clock, so a jump of the wall clock
 * does not affect liveness.
 */
export function healthOf(...components: readonly ComponentHandle[]): Health {
  const checks = components.map(checkOf);
  const live = checks.every((check) => check.live);
  return { live, ready: live && checks.every((check) => check.ready), checks };
}

/** @throws {TypeError} for something that is not a component of this library. */
export function assertComponents(owner: string, components: readonly unknown[]): void {
  if (components.every((component) => hasMethods(component, ['status', 'start', 'close']))) return;
  throw new TypeError(
    `${owner}: every argument must be a component of this library, such as a ResilientWatcher`,
  );
}

function checkOf(component: ComponentHandle): HealthCheck {
  const { state } = component.status();
  const isIdle = state === 'idle' && !NEED_NO_START.has(component.kind);
  const isRunning = !isIdle && state !== 'closed';
  let verdict: Verdict = isRunning ? {} : { unready: `it is ${state}` };
  if (isRunning) for (const rule of RULES) verdict = rule(component) ?? verdict;
  const { dead, unready } = verdict;
  return {
    component: component.kind,
    name: component.name,
    live: dead === undefined,
    ready: dead === undefined && unready === undefined,
    reason: dead ?? unready ?? null,
  };
}

function watcherVerdict(component: ComponentHandle): Verdict | undefined {
  const status = statusOf(component, 'ResilientWatcher');
  if (!status) return undefined;
  const { sinceLastCheckMs, checkIntervalMs, changes, target } = status;
  if (checkIntervalMs !== null && (sinceLastCheckMs ?? 0) > MISSED_CHECKS * checkIntervalMs) {
    return { dead: `the last check ended ${Math.round(sinceLastCheckMs ?? 0)} ms ago` };
  }
  return {
    unready: changes > 0 ? undefined : `nothing was seen yet: the target is ${target ?? 'not checked'}`,
  };
}

function configVerdict(component: ComponentHandle): Verdict | undefined {
  const status = statusOf(component, 'ConfigLoader');
  if (!status) return undefined;
  if (status.loadedAt === null) return { unready: 'no configuration was loaded yet' };
  const rejected = status.sources.filter(({ state }) => state === 'rejected').map(({ name }) => name);
  return { unready: rejected.length > 0 ? `rejected: ${rejected.join(', ')}` : undefined };
}

function refresherVerdict(component: ComponentHandle): Verdict | undefined {
  const status = statusOf(component, 'TokenRefresher');
  if (!status) return undefined;
  const { healthy, lastError, lastMintAt } = status;
  if (lastMintAt === null) return { unready: 'there is no token yet' };
  return { unready: healthy ? undefined : `unhealthy: ${lastError?.code ?? 'the token has expired'}` };
}

function expiryVerdict(component: ComponentHandle): Verdict | undefined {
  const token = statusOf(component, 'TokenFile');
  const tls = statusOf(component, 'TlsFiles');
  const expiresAt = (token ?? tls)?.expiresAt;
  if (expiresAt === undefined) return undefined;
  const isAvailable = token ? token.lastReadAt !== null : tls?.available === true;
  if (!isAvailable) return { unready: 'no valid contents were read yet' };
  // Null: it never expires.
  const isExpired = expiresAt !== null && expiresAt <= systemClock.now();
  return { unready: isExpired ? 'it has expired' : undefined };
}

function actionVerdict(component: ComponentHandle): Verdict | undefined {
  const status = statusOf(component, 'ReloadAction');
  if (!status) return undefined;
  const isBad = status.lastSuccessful === false;
  return {
    unready: isBad ? `the last action failed: ${status.lastError?.code ?? 'interrupted'}` : undefined,
  };
}
