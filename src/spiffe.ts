/** The entry point "resilient-watcher/spiffe". Experimental, like the proposal of SPIFFE Filesystem Delivery. */
import './index.js';

export type { SpiffePeerOptions } from './tls/authorize-peer.js';
export { serveSpiffe, type ServeSpiffeOptions } from './tls/serve-spiffe.js';
export { spiffeAgent, spiffeDispatcher } from './tls/spiffe-clients.js';
export { spiffeFolder } from './tls/spiffe-folder.js';
export { spiffeIdOf, type SpiffeId } from './tls/spiffe-id.js';
