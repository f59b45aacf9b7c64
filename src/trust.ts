/**
 * The entry point "resilient-watcher/trust", for `NODE_OPTIONS="--import resilient-watcher/trust"`: makes the process trust
 * the CA bundle in the environment variable `RESILIENT_WATCHER_CA`, and follow it. Does nothing without the variable.
 */
export { environmentCa } from './tls/environment-ca.js';
