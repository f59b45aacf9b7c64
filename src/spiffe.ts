/** The entry point "resilient-watcher/spiffe". Experimental, like the proposal of SPIFFE Filesystem Delivery. */
export { serveSpiffe, type ServeSpiffeOptions } from './spiffe/serve-spiffe.js';
export { spiffeAgent, spiffeDispatcher, type SpiffeClientOptions } from './spiffe/spiffe-clients.js';
export {
  SpiffeCredentials,
  spiffeFolder,
  SpiffeFolder,
  type SpiffeFolderEvents,
  type SpiffeFolderOptions,
  type SpiffeFolderStatus,
} from './spiffe/spiffe-folder.js';
export { spiffeIdOf, type SpiffeId } from './spiffe/spiffe-id.js';
