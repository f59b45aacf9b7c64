/** A real HAProxy, reloaded under load by the command that the page of the program gives. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test, vi } from 'vitest';

import { textOf } from '../../../../test/docs/markdown.js';
import { freePort } from '../../../../test/support/free-port.js';
import { skip } from '../../../../test/support/namespace.js';
import { get } from '../../../../test/support/plain-request.js';
import { startCli } from '../../../../test/support/program.js';
import { rounds } from '../../../../test/support/rounds.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { keepDoing } from '../../../../test/support/tls-clients.js';

const RELOADS = rounds(4, 40);

/** The arguments of the entry of packages/cli/docs/cli.md, with paths of this test. */
function argumentsFromPage(directory: string, pidFile: string): string[] {
  const entry =
    /^\| reload HAProxy .*`(watch [^`]+)` \|$/m.exec(textOf('packages/cli/docs/cli.md'))?.[1] ?? '';
  const words = [...entry.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
  return words.map((word) => word.replaceAll('/etc/haproxy', directory).replace('/run/haproxy.pid', pidFile));
}

test(`HAProxy under load is reloaded ${RELOADS} times: no request fails, and what is not valid is not used`, async (context) => {
  if (spawnSync('haproxy', ['-v']).error) skip(context, 'haproxy is not installed');
  const directory = temporaryDirectory();
  const volume = new KubeletVolume(join(directory, 'volume'));
  const port = await freePort();
  const publish = (text: string): void => {
    const lines = [
      'global',
      '  hard-stop-after 10s',
      'defaults',
      '  mode http',
      '  timeout connect 5s',
      '  timeout client 30s',
      '  timeout server 30s',
      'frontend web',
      `  bind 127.0.0.1:${port}`,
      `  http-request return status 200 content-type text/plain string ${text}`,
      '',
    ];
    volume.publish({ 'haproxy.cfg': lines.join('\n') });
  };
  publish('0');
  const pidFile = join(directory, 'pid');
  const haproxy = spawn('haproxy', ['-W', '-p', pidFile, '-f', volume.path('haproxy.cfg')], {
    stdio: 'ignore',
  });
  const ended = new Promise((resolve) => haproxy.once('exit', resolve));
  onTestFinished(async () => {
    haproxy.kill('SIGTERM');
    await ended;
  });
  const ask = (): Promise<string> => get({ host: '127.0.0.1', port });
  await expect.poll(() => ask().catch(() => 'not up')).toBe('0');
  await expect.poll(() => existsSync(pidFile)).toBe(true);
  const program = startCli([...argumentsFromPage(volume.directory, pidFile), '--json']);
  await program.until(/"ready"/);

  /** Publishes it until it is served: HAProxy loses a signal that comes while it replaces itself. */
  const serve = async (text: string): Promise<void> => {
    const isServed = (): Promise<boolean> =>
      vi.waitUntil(async () => (await ask()) === text, { timeout: 10_000, interval: 20 }).catch(() => false);
    do publish(text);
    while (!(await isServed()));
  };

  const clients = Array.from({ length: 2 }, () => keepDoing(ask));
  for (let index = 1; index <= RELOADS; index += 1) {
    publish(`0 invalid${index}`);
    // What HAProxy says of it.
    await program.until(new RegExp(`'invalid${index}'`));
    await serve(String(index));
  }
  const answers = (await Promise.all(clients.map(({ stop }) => stop()))).flat();
  const valid = Array.from({ length: RELOADS + 1 }, (_, index) => String(index));
  expect(valid).toEqual(expect.arrayContaining([...new Set(answers)]));
});
