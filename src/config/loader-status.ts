import type { ConfigProblem } from '../core/errors.js';

/** How a loader is: plain data without values, fit for a health endpoint. Moments are epoch ms. */
export interface ConfigLoaderStatus {
  readonly state: 'idle' | 'loading' | 'running' | 'closed';
  /** When what is current was accepted. */
  readonly loadedAt: number | null;
  /** Changes of the configuration since it was loaded. */
  readonly changes: number;
  readonly rejections: number;
  readonly lastRejectedAt: number | null;
  readonly sources: readonly ConfigSourceStatus[];
}

/** How a source of a loader is. */
export interface ConfigSourceStatus {
  readonly name: string;
  /**
   * `current`: its newest state is in the configuration. `rejected`: its newest state could not be read, parsed or
   * validated, an older one is used. `unread`: it was not read yet.
   */
  readonly state: 'unread' | 'current' | 'rejected';
  /** Of the bytes last read, `sha256:…`. */
  readonly digest: string | null;
  /** Why its newest state could not be read or parsed. */
  readonly problems: readonly ConfigProblem[];
}
