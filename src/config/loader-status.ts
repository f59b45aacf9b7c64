import type { ComponentStatus } from '../core/lifecycle/component.js';
import { flag, seconds, type StatusDescription } from '../core/telemetry/status-description.js';
import type { ConfigProblem } from './config-error.js';

/** The status of a loader. Plain data without values, suitable for a health endpoint. Times are epoch ms. */
export interface ConfigLoaderStatus extends ComponentStatus {
  readonly state: 'idle' | 'starting' | 'running' | 'closed';
  /** When the current configuration was accepted. */
  readonly loadedAt: number | null;
  /**
   * Identifies the values in use, `sha256:…`: two processes with the same digest use the same values, wherever these
   * come from. Null before the first load.
   */
  readonly digest: string | null;
  /** When a load or reload was last successful, even if it changed nothing. */
  readonly reloadedAt: number | null;
  /** Changes of the configuration since it was loaded. */
  readonly changes: number;
  /** The number of rejected updates. */
  readonly rejections: number;
  readonly lastRejectedAt: number | null;
  /** The sources, from the lowest layer to the highest. */
  readonly sources: readonly ConfigSourceStatus[];
}

/** The status of a source of a loader. */
export interface ConfigSourceStatus {
  readonly name: string;
  /**
   * `current`: its newest state is in the configuration. `rejected`: its newest state could not be read, parsed or
   * validated, and an older one is in use. `unread`: it has not been read yet.
   */
  readonly state: 'unread' | 'current' | 'rejected';
  /** Whether native watching is unavailable, so that it is polled. */
  readonly degraded: boolean;
  /** The digest of the bytes last read, `sha256:…`; null if there are none. */
  readonly digest: string | null;
  /** Why its newest state could not be read, parsed or validated; of a schema, what is about a value of this source. */
  readonly problems: readonly ConfigProblem[];
}

/** Without an initial 0, `increase()` misses the first failure. */
const RELOAD_RESULTS = ['accepted', 'unchanged', 'rejected', 'error'];

/** Ready: loaded, and the last reload was good. */
export const loaderDescription: StatusDescription<ConfigLoaderStatus> = {
  health({ loadedAt, sources }) {
    if (loadedAt === null) return { unready: 'no configuration has been loaded yet' };
    const rejected = sources
      .filter(({ state }) => state === 'rejected')
      .map(({ name, problems }) => problems[0]?.message ?? name);
    return { unready: rejected.length > 0 ? `rejected: ${rejected.join('; ')}` : undefined };
  },
  *metrics({ sources, reloadedAt, digest }) {
    if (digest !== null) yield flag('config.info', true, { digest });
    yield flag(
      'config.last_reload.successful',
      sources.every(({ state }) => state === 'current'),
    );
    yield* seconds('config.last_reload.success.timestamp', reloadedAt);
    for (const result of RELOAD_RESULTS) yield { metric: 'config.reloads', labels: { result }, value: 0 };
  },
};
