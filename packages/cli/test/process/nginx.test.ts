/** A real nginx, reloaded while it is under load. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { skip } from '../../../../test/support/namespace.js';
import { get } from '../../../../test/support/plain-request.js';
import { startCli } from '../../../../test/support/program.js';
import { rounds } from '../../../../test/support/rounds.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { keepDoing } from '../../../../test/support/tls-clients.js';

const SWAPS = rounds(20, 200);

/** Two files that belong together: an answer of "1 2" would be half a configuration. */
const files = (n: number): Record<string, string> => ({
  'a.conf': `map $host $a { default ${n}; }`,
  'b.conf': `map $host $b { default ${n}; }`,
});

test(`nginx under load is reloaded over ${SWAPS} swaps: no request fails, no answer mixes two revisions`, async (context) => {
  if (spawnSync('nginx', ['-v']).error) skip(context, 'nginx is not installed');
  const directory = temporaryDirectory();
  const volume = new KubeletVolume(join(directory, 'volume'));
  volume.publish(files(0));
  mkdirSync(join(directory, 'conf'));
  const socketPath = join(directory, 'socket');
  const main = (include: string): string => `
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off; worker_processes 2; pid ${directory}/pid; error_log ${directory}/error.log warn;
    events { worker_connections 256; }
    http {
      access_log off; include ${include}/*.conf;
      ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${directory}/${name};`).join(' ')}
      server { listen unix:${socketPath}; location / { return 200 "$a $b"; } }
    }`;
  writeFileSync(join(directory, 'nginx.conf'), main(`${volume.directory}/..data`));
  // Each revision is copied, since kubelet removes the previous one, and used from a main file that is replaced whole.
  writeFileSync(join(directory, 'template'), main(`${directory}/conf/REVISION`));
  const stage = `cd ${directory} && rm -rf "conf/$RW_REVISION" && cp -r "volume/$RW_REVISION" conf/ && sed "s/REVISION/$RW_REVISION/" template > next.conf`;
  const reload = `cd ${directory} && mv next.conf nginx.conf && nginx -p ${directory} -c ${directory}/nginx.conf -e ${directory}/error.log -s reload`;
  const nginxFlags = [
    '-p',
    directory,
    '-c',
    join(directory, 'nginx.conf'),
    '-e',
    join(directory, 'error.log'),
  ];
  const nginx = spawn('nginx', nginxFlags, { stdio: 'ignore' });
  const ended = new Promise((resolve) => nginx.once('exit', resolve));
  onTestFinished(async () => {
    nginx.kill('SIGTERM');
    await ended;
  });
  await expect.poll(() => get({ socketPath }).catch(() => 'not up')).toBe('0 0');

  const check = `${stage} && nginx -t -q -p ${directory} -c ${directory}/next.conf -e ${directory}/error.log`;
  const program = startCli(['watch', volume.directory, '--json', '--check', check, '--exec', reload]);
  await program.until(/"ready"/);

  const answers = new Set<string>();
  const failures: unknown[] = [];
  const ask = async (): Promise<string | undefined> => {
    try {
      const answer = await get({ socketPath });
      answers.add(answer);
      return answer;
    } catch (error) {
      failures.push(error);
      return undefined;
    }
  };
  const clients = Array.from({ length: 4 }, () => keepDoing(ask));
  for (let n = 1; n <= SWAPS; n += 1) {
    volume.publish(files(n));
    await ask();
    // Often enough that many reloads take place, and seldom enough that swaps meet a reload under way.
    if (n % 5 === 0) await expect.poll(ask).toBe(`${n} ${n}`);
  }
  await Promise.all(clients.map(({ stop }) => stop()));

  const mixed = [...answers].filter((answer) => !/^(\d+) \1$/.test(answer));
  expect({ failures, mixed }).toEqual({ failures: [], mixed: [] });
  expect(answers.size).toBeGreaterThanOrEqual(SWAPS / 5);
});
