#!/usr/bin/env node
// What `npx resilient-watcher` runs. This package is the library; the program is in a package of its own, so that a service
// does not install what only the program needs.
const [command = '--help', ...more] = process.argv.slice(2);
console.error(`resilient-watcher is the library. The program is in the package @resilient-watcher/cli:

  npx @resilient-watcher/cli ${command}${more.length > 0 ? ' …' : ''}`);
process.exitCode = 2;
