import type { ComponentStatus } from '../core/component.js';
import type { ConfigProblem } from '../core/errors.js';

/** How a loader is doing. Plain data without values, fit for a health endpoint. Times are epoch ms. */
export interface ConfigLoaderStatus extends ComponentStatus {
  readonly state: 'idle' | 'starting' | 'running' | 'closed';
  /** When the current configuration was accepted. */
  readonly loadedAt: number | null;
  /** Changes of the configuration since it was loaded. */
  readonly changes: number;
  /** How many updates were rejected. */
  readonly rejections: number;
  readonly lastRejectedAt: number | null;
  /** The sources, from the lowest layer. */
  readonly sources: readonly ConfigSourceStatus[];
}

/** How a source of a loader is doing. */
export interface ConfigSourceStatus {
  readonly name: string;
  /**
   * `current`: its newest state is in the configuration. `rejected`: its newest state could not be read, parsed or
   * validated, and an older one is used. `unread`: it was not read yet.
   */
  readonly state: 'unread' | 'current' | 'rejected';
  /** Whether native watching is unavailable, so that it is polled. */
  readonly degraded: boolean;
  /** Of the bytes last read, `sha256:…`; null where there are none. */
  readonly digest: string | null;
  /** Why its newest state could not be read or parsed. */
  readonly problems: readonly ConfigProblem[];
}
