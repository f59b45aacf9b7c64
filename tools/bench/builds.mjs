/**
 * The builds of this library that are compared: `dist`, and with `--beside DIRECTORY` another one, such as that of the commit
 * before: a checkout that was built, or its `dist`.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

// Taken out of the arguments, because each benchmark knows only its own; a child process inherits the variable.
const at = process.argv.findIndex((argument) => /^--beside(?:=|$)/.test(argument));
if (at >= 0) {
  const [flag, next] = process.argv.slice(at, at + 2);
  const isJoined = flag.includes('=');
  process.env.BENCH_BESIDE = resolve(isJoined ? flag.slice(flag.indexOf('=') + 1) : next);
  process.argv.splice(at, isJoined ? 1 : 2);
}

function entryPointIn(directory) {
  const file = [join(directory, 'dist', 'index.js'), join(directory, 'index.js')].find(existsSync);
  if (!file) throw new Error(`--beside: there is no build in "${directory}"`);
  return pathToFileURL(file).href;
}

const beside = process.env.BENCH_BESIDE;

/** The entry point of each, by the name it is shown under. */
export const builds = {
  'resilient-watcher': new URL('../../dist/index.js', import.meta.url).href,
  ...(beside && { 'resilient-watcher beside': entryPointIn(beside) }),
};
