/** Preloaded into a copy of `node.exe` that is called `taskkill.exe`: ends a process of the file `starts`, and what it has started. */
const { readFileSync } = require('node:fs');
const { basename, join } = require('node:path');

if (basename(process.execPath) === 'taskkill.exe') {
  const pid = process.argv.map(Number).find((number) => number > 0);
  const lines = readFileSync(join(process.env.TREES, 'starts'), 'utf8').split('\n');
  const tree = lines.map((line) => line.split(' ').map(Number)).find(([first]) => first === pid) ?? [pid];
  for (const each of tree.reverse()) process.kill(each);
  process.exit(0);
}
