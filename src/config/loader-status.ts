import type { ComponentStatus } from '../core/component.js';
import type { ConfigProblem } from './config-error.js';

/** The status of a loader. Plain data without values, suitable for a health endpoint. Times are epoch ms. */
export interface ConfigLoaderStatus extends ComponentStatus {
  readonly state: 'idle' | 'starting' | 'running' | 'closed';
  /** When the current configuration was accepted. */
  readonly loadedAt: number | null;
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
