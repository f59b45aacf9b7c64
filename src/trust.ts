/**
 * The entry point "resilient-watcher/trust", for `NODE_OPTIONS="--import resilient-watcher/trust"`: makes the process
 * trust the CA bundle in the environment variable `RESILIENT_WATCHER_CA`, and follow it. Node.js looks the package up
 * from the working directory; from another one, name the file: `--import
 * /app/node_modules/resilient-watcher/dist/trust.js`.
 */
import './index.js';

export { environmentCa } from './tls/environment-ca.js';
