/**
 * The entry point "resilient-watcher/internal": for the packages of this repository, at exactly this version. It is no API:
 * any release may change it. It has what they need beyond the other entry points, and nothing that none of them uses.
 */
import './index.js';

export { flag, resolveOptions } from './core/options.js';
export { isCaRemoved } from './tls/certificate-set.js';
export { endLater } from './tls/client-connections.js';
export { DRAIN_MS, generationsOf } from './tls/generation.js';
export { checkTlsFiles } from './tls/tls-files.js';
