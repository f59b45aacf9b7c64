#!/usr/bin/env node
// The kernel drops the signals that PID 1 has no handler for, and the program takes a while to load.
const exit = (_, number) => process.exit(128 + number);
const names = process.pid === 1 ? ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] : [];
for (const name of names) process.on(name, exit);
const { start } = await import('./dist/main.js');
await start(() => {
  for (const name of names) process.off(name, exit);
});
