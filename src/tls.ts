/** The entry point "resilient-watcher/tls". `undici` is loaded on first use. */
import './index.js';

export { TlsError } from './tls/tls-error.js';
export {
  DefaultCa,
  followDefaultCa,
  type DefaultCaStatus,
  type FollowDefaultCaOptions,
} from './tls/default-ca.js';
export { httpsAgent } from './tls/https-agent.js';
export { ServedTls, serveTls, type ServedTlsStatus, type ServeTlsOptions } from './tls/serve-tls.js';
export { sniCallback } from './tls/sni-callback.js';
export { spiffeIdOf, type SpiffeId } from './tls/spiffe-id.js';
export { TlsCredentials } from './tls/tls-credentials.js';
export {
  TlsFiles,
  type EndedConnections,
  type TlsFilesEvents,
  type TlsFilesOptions,
  type TlsFilesStatus,
} from './tls/tls-files.js';
export type { TlsParser, TlsParsing, TlsPem } from './tls/tls-parser.js';
export type { NamedPaths, TlsPaths } from './tls/tls-paths.js';
export { undiciDispatcher } from './tls/undici-dispatcher.js';
