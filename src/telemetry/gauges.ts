/** Reads the values of the gauges from the status of the live components, when they are collected. */
import type { ComponentHandle } from '../core/telemetry-messages.js';
import type { WatcherWarning } from '../watch/watcher-events.js';
import type { TlsFilesStatus } from '../tls/tls-files.js';
import { METRICS, type GaugeName, type Labels, type Sample } from './metrics.js';
import { statusOf } from './status-of.js';

/** What a gauge needs in addition to the components. */
interface GaugeSources {
  readonly components: Iterable<ComponentHandle>;
  /** When each configuration was last loaded successfully, epoch ms. */
  readonly reloadedAt: ReadonlyMap<ComponentHandle, number>;
  /** The labels of a sample; components beyond the limit share their labels. */
  readonly bounded: (labels: Labels) => Labels;
}

type Read = (component: ComponentHandle, sources: GaugeSources) => Iterable<Sample>;

/** The states of a running watcher. */
const WATCHER_STATES = ['watching', 'recovering', 'degraded'] as const;
/** The states of the target. */
const TARGET_STATES = ['missing', 'unreadable'] as const;
const WARNING_CODES: Readonly<Record<WatcherWarning['code'], true>> = { subPath: true, limit: true };

const READ: Readonly<Record<Exclude<GaugeName, 'native_watches'>, Read>> = {
  *status(component) {
    const status = statusOf(component, 'ResilientWatcher');
    if (!status) return;
    for (const state of WATCHER_STATES) yield flag({ state }, status.state === state);
    for (const state of TARGET_STATES) yield flag({ state }, status.target === state);
  },
  *warning(component) {
    const status = statusOf(component, 'ResilientWatcher');
    if (!status) return;
    const on = new Set<string>(status.warnings.map(({ code }) => code));
    for (const code of Object.keys(WARNING_CODES)) yield flag({ code }, on.has(code));
  },
  'last_change.timestamp': (component) => time(statusOf(component, 'ResilientWatcher')?.lastChangeAt),
  'last_check.timestamp': (component) => time(statusOf(component, 'ResilientWatcher')?.lastCheckAt),
  *'config.last_reload.successful'(component) {
    const status = statusOf(component, 'ConfigLoader');
    const isCurrent = status?.sources.every(({ state }) => state === 'current');
    if (isCurrent !== undefined) yield flag({}, isCurrent);
  },
  'config.last_reload.success.timestamp': (component, { reloadedAt }) =>
    time(reloadedAt.get(component) ?? statusOf(component, 'ConfigLoader')?.loadedAt),
  'token.expiration.timestamp': (component) =>
    time((statusOf(component, 'TokenRefresher') ?? statusOf(component, 'TokenFile'))?.expiresAt),
  'token.next_refresh.timestamp': (component) => time(statusOf(component, 'TokenRefresher')?.nextRefreshAt),
  'token.clock_skew': (component) => time(statusOf(component, 'TokenRefresher')?.skewMs),
  'certificate.expiration.timestamp': (component) => time(certificateOf(component)?.expiresAt),
  *'certificate.last_update.successful'(component) {
    const status = certificateOf(component);
    if (status) yield flag({}, status.available && status.rejected === null);
  },
  'certificate.not_before.timestamp': (component) => time(certificateOf(component)?.notBefore),
};

/** The samples of one gauge, each set of labels once. */
export function samplesOf(name: GaugeName, sources: GaugeSources): Sample[] {
  if (name === 'native_watches') return nativeWatches(sources);
  const pick = METRICS[name].of === 'least' ? Math.min : Math.max;
  const own = METRICS[name].labels.some((label) => label === 'loader') ? 'loader' : 'target';
  const samples = new Map<string, Sample>();
  for (const component of sources.components) {
    for (const { labels, value } of READ[name](component, sources)) {
      const all = sources.bounded({ [own]: component.name, ...labels });
      const key = JSON.stringify(all);
      const other = samples.get(key);
      samples.set(key, { labels: all, value: other ? pick(other.value, value) : value });
    }
  }
  return [...samples.values()];
}

/** Watchers of the same directory share its watch, so each directory counts once. */
function nativeWatches({ components, bounded }: GaugeSources): Sample[] {
  const directories = new Map<string, Set<string>>();
  for (const component of components) {
    const status = statusOf(component, 'ResilientWatcher');
    const backend = status?.backend ?? 'poll';
    if (!status || backend === 'poll') continue;
    const watched = directories.get(backend) ?? new Set();
    for (const directory of status.watchedDirectories) watched.add(directory);
    directories.set(backend, watched);
  }
  return [...directories].map(([backend, watched]) => ({
    labels: bounded({ backend }),
    value: watched.size,
  }));
}

function flag(labels: Labels, isOn: boolean): Sample {
  return { labels, value: isOn ? 1 : 0 };
}

/** A moment or a duration in seconds, if there is one. */
function* time(ms: number | null | undefined): Iterable<Sample> {
  if (typeof ms === 'number' && Number.isFinite(ms)) yield { labels: {}, value: ms / 1_000 };
}

function certificateOf(component: ComponentHandle): TlsFilesStatus | undefined {
  return statusOf(component, 'TlsFiles');
}
