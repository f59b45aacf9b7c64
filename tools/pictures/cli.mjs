/** `node tools/pictures/cli.mjs`: writes packages/cli/docs/cli.svg from what `watch` and `doctor` really print. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { KubeletVolume } from 'resilient-watcher/testing';

import { writeTerminalPicture } from './terminal-picture.mjs';

const program = fileURLToPath(new URL('../../packages/cli/bin.js', import.meta.url));
const home = mkdtempSync(join(tmpdir(), 'recording-'));
const volume = new KubeletVolume(join(home, 'conf.d'));
volume.publish({ 'site.conf': 'good' });
const env = { ...process.env, NO_COLOR: '1' };
const args = [
  'watch',
  volume.directory,
  '--check',
  `grep -q good ${volume.path('site.conf')}`,
  '--exec',
  'true',
];

const watch = spawn(process.execPath, [program, ...args], { env });
let printed = '';
watch.stderr.setEncoding('utf8').on('data', (chunk) => (printed += chunk));
const until = async (text) => {
  while (!printed.includes(text)) await new Promise((resolve) => watch.stderr.once('data', resolve));
};
await until('watching');
volume.publish({ 'site.conf': 'good, and newer' });
await until('done in');
volume.publish({ 'site.conf': 'bad' });
await until('update rejected');
watch.kill('SIGTERM');
await new Promise((resolve) => watch.once('close', resolve));
const doctor = spawnSync(process.execPath, [program, 'doctor', volume.path('site.conf')], {
  env,
  encoding: 'utf8',
});
rmSync(home, { recursive: true });

const text = [
  `$ resilient-watcher watch /etc/nginx/conf.d --check 'nginx -t' --exec 'nginx -s reload'`,
  printed.trimEnd(),
  '',
  '$ resilient-watcher doctor /etc/nginx/conf.d/site.conf',
  doctor.stdout.trimEnd(),
].join('\n');
// The commands of the recording stand in for nginx; the rest is as printed.
const shown = text
  .replaceAll(volume.directory, '/etc/nginx/conf.d')
  .replaceAll(/"grep"/g, '"nginx"')
  .replaceAll(' true: ', ' nginx: ');

writeTerminalPicture({
  name: 'packages/cli/docs/cli',
  title: 'What watch and doctor print',
  text: shown,
  colorOf(line) {
    if (line.startsWith('$')) return '#7ee787';
    if (/ WARN |^ *never/.test(line)) return '#f0b72f';
    return undefined;
  },
});
