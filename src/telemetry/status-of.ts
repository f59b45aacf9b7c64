import type { ComponentHandle } from '../core/telemetry-messages.js';
import type { ConfigLoaderStatus } from '../config/loader-status.js';
import type { ReloadActionStatus } from '../action/reload-action.js';
import type { TlsFilesStatus } from '../tls/tls-files.js';
import type { TokenFileStatus } from '../token/token-file.js';
import type { TokenRefresherStatus } from '../token/refresher-status.js';
import type { WatcherStatus } from '../watch/watcher-status.js';

/** The components whose status telemetry reads, by kind. */
export interface Statuses {
  ResilientWatcher: WatcherStatus;
  ConfigLoader: ConfigLoaderStatus;
  TokenRefresher: TokenRefresherStatus;
  TokenFile: TokenFileStatus;
  TlsFiles: TlsFilesStatus;
  ReloadAction: ReloadActionStatus;
}

/** The status of a component, if it is of this kind. */
export function statusOf<K extends keyof Statuses>(
  component: ComponentHandle,
  kind: K,
): Statuses[K] | undefined {
  return component.kind === kind ? (component.status() as unknown as Statuses[K]) : undefined;
}
