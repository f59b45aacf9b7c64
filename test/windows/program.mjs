/** The program on Windows or macOS. Where commands are stopped on Wine, a stand-in is `taskkill`: that of Wine 8 has no `/T`. */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { LocalApiServer } from '../../packages/local-api-server/dist/index.js';
import { attempt, equal, isWindows, isWine, start, until } from './tools.mjs';

const command = fileURLToPath(new URL('command.mjs', import.meta.url));

/** The environment in which `taskkill /T` works. */
function ending(root) {
  if (!isWine) return process.env;
  const folder = path.join(root, 'bin');
  fs.mkdirSync(folder);
  fs.copyFileSync(process.execPath, path.join(folder, 'taskkill.exe'));
  const { Path, PATH = Path } = process.env;
  const script = fileURLToPath(new URL('taskkill.cjs', import.meta.url));
  return {
    ...process.env,
    PATH: `${folder};${PATH}`,
    NODE_OPTIONS: `--require=${script.replaceAll('\\', '/')}`,
    TREES: root,
  };
}

/** The processes of each start of the command. */
function startsIn(root) {
  const lines = attempt(() => fs.accessSync(path.join(root, 'starts')))
    ? fs.readFileSync(path.join(root, 'starts'), 'utf8')
    : '';
  return lines
    .split('\n')
    .filter(Boolean)
    .map((line) => line.split(' ').map(Number));
}

const isAlive = (pid) => attempt(() => process.kill(pid, 0));

const areGone = (pids) => () => !pids.some(isAlive);

async function keepsToken(root, server) {
  server.addServiceAccount('shop', 'web');
  const { token } = await server.mint('shop', 'web');
  const kubeconfig = path.join(root, 'config');
  const ca = Buffer.from(server.caPem).toString('base64');
  const cluster = { name: 'c', cluster: { server: server.url, 'certificate-authority-data': ca } };
  const context = { name: 'x', context: { cluster: 'c', user: 'u' } };
  const users = [{ name: 'u', user: { token } }];
  const config = { 'current-context': 'x', clusters: [cluster], contexts: [context], users };
  fs.writeFileSync(kubeconfig, JSON.stringify(config));
  const args = ['token', '--out', path.join('new', 'token'), '--service-account', 'shop/web'];
  const once = start([...args, '--kubeconfig', kubeconfig, '--once'], root);
  equal(await once.exit, 0, once.text());
  equal(fs.readFileSync(path.join(root, 'new', 'token'), 'utf8').split('.').length, 3);
}

export const PROGRAM_SCENARIOS = {
  async 'the program explains itself'(root) {
    const help = start(['--help'], root);
    equal(await help.exit, 0);
    if (!help.text().includes('doctor')) throw new Error(help.text());
  },
  async 'the program diagnoses a path'(root) {
    fs.writeFileSync(path.join(root, 'file'), '1');
    const doctor = start(['doctor', path.join(root, 'file')], root);
    equal(await doctor.exit, 0, doctor.text());
    if (!doctor.text().includes(path.join(root, 'file'))) throw new Error(doctor.text());
  },
  async 'the program waits for a file'(root) {
    const waits = start(['wait', 'file', '--timeout', '50s'], root);
    await sleep(500);
    fs.writeFileSync(path.join(root, 'file'), '1');
    equal(await waits.exit, 0, waits.text());
  },
  async 'the program prints changes'(root) {
    fs.writeFileSync(path.join(root, 'file'), '1');
    const watch = start(['watch', '--json', path.join(root, 'file')], root);
    await until('watching', () => watch.text().includes('file'));
    fs.writeFileSync(path.join(root, 'file'), '2');
    const before = watch.text().length;
    await until('told', () => watch.text().length > before);
    watch.child.kill();
    await watch.exit;
  },
  async 'the program keeps a token in a file'(root) {
    const server = await LocalApiServer.start();
    try {
      await keepsToken(root, server);
    } finally {
      await server.close();
    }
  },
  async 'the program refuses a signal that would end the command'(root) {
    if (!isWindows) return;
    fs.writeFileSync(path.join(root, 'file'), '1');
    const run = start(['run', 'file', '--', process.execPath, '--version'], root);
    equal(await run.exit, 2, run.text());
    if (!run.text().includes('--on-change restart')) throw new Error(run.text());
  },
  async 'the program restarts a command with what it has started, and ends with it'(root) {
    const file = path.join(root, 'file');
    fs.writeFileSync(file, '1');
    const args = ['run', '--on-change', 'restart', '--stop-signal', 'KILL', 'file'];
    const run = start([...args, '--', process.execPath, command, root], root, ending(root));
    const [first] = await until('started', () => startsIn(root)[0] && startsIn(root));
    fs.writeFileSync(file, '2');
    const [, second] = await until('started again', () => startsIn(root)[1] && startsIn(root));
    await until('gone', areGone(first));
    fs.writeFileSync(path.join(root, 'stop'), '');
    equal(await run.exit, 3, run.text());
    await until('gone', areGone(second));
  },
  async 'the program ends an action that takes too long, with what it has started'(root) {
    const file = path.join(root, 'file');
    fs.writeFileSync(file, '1');
    const args = ['watch', '--timeout', '1s', '--stop-signal', 'KILL', '--exit-on-error', 'file'];
    const watch = start([...args, '--', process.execPath, command, root], root, ending(root));
    const writing = setInterval(() => fs.writeFileSync(file, String(Math.random())), 500);
    try {
      equal(await watch.exit, 1, watch.text());
    } finally {
      clearInterval(writing);
    }
    await until('gone', areGone(startsIn(root).flat()));
  },
};
