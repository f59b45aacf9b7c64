/** The entry point "@resilient-watcher/cli/manifests": the rules of `doctor --manifest`. */
export type { Finding } from './manifests/finding.js';
export { findingsInManifests } from './manifests/manifest.js';
