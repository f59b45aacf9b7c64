/** `node tools/pictures/demo.mjs`: writes docs/demo.svg from what `npm run demo` really prints. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { writeTerminalPicture } from './terminal-picture.mjs';

const demo = fileURLToPath(new URL('../../examples/demo.mjs', import.meta.url));
const { status, stdout, stderr } = spawnSync(process.execPath, [demo], { encoding: 'utf8' });
if (status !== 0) throw new Error(`the demo failed: ${stdout}${stderr}`);

const isScene = (line, index, lines) =>
  /^\S/.test(line) && lines[index - 1] === '' && /^ {2}✓/.test(lines[index + 1] ?? '');
const text = `$ npm run demo\n${stdout.trimEnd()}`.replaceAll(
  /"\/tmp\/[^"]*\/policy\/policy.yaml"/g,
  '"policy.yaml"',
);
const lines = text.split('\n');
const scenes = new Set(lines.filter(isScene));

writeTerminalPicture({
  name: 'docs/demo',
  title: 'What npm run demo prints',
  text,
  colorOf(line) {
    if (line.startsWith('$')) return '#7ee787';
    if (scenes.has(line)) return '#79c0ff';
    return undefined;
  },
});
