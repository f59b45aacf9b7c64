/**
 * What is taken from `node:buffer`, `node:fs` and `node:util`. An `import` reads every property of a module of Node.js,
 * and so loads what they load lazily: all streams, the parsers of arguments and of MIME types, `File`; 23 modules on
 * Node.js 20 and 44 on Node.js 24. That was 6 ms of the 30 that `import 'resilient-watcher'` took on Node.js 24, and 3
 * of 34 on Node.js 20.
 */
export const nodeFileSystem = process.getBuiltinModule('node:fs');
export const { constants } = nodeFileSystem;
export const { isUtf8 } = process.getBuiltinModule('node:buffer');
/** What Node.js loads lazily is read from this where it is used. */
export const nodeUtil = process.getBuiltinModule('node:util');
export const { inspect } = nodeUtil;
