/** As in package.json, which a bundled application does not have. */
const VERSION = '0.1.0';

/** How requests of this library introduce themselves. */
export const USER_AGENT = `resilient-watcher/${VERSION}`;
