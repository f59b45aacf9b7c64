/** Plugins of a kubeconfig (`exec`) that hang, such as one whose cloud does not answer. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { KubeConfig } from '@kubernetes/client-node';
import { clusterClient, tokenRequestClient } from 'resilient-watcher/kubernetes';
import { FakeClock } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test, vi } from 'vitest';

import { clusterScene } from '../support/cluster-scene.js';

const version = { method: 'GET', path: '/version' } as const;
const lines = { ...version, path: '/api/v1/namespaces/ci/configmaps?watch=1&resourceVersion=1' };

/** A kubeconfig with a plugin that hangs as long as the file `hangs` exists. */
async function pluginScene() {
  const { server, directory } = await clusterScene();
  const { token } = await server.mint('ci', 'builder');
  const [plugin, hangs, pids] = ['plugin', 'hangs', 'pids'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  const status = { token };
  const credential = { apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status };
  writeFileSync(
    plugin,
    `#!/bin/sh\nif [ -e ${hangs} ]; then : > ${pids}/$$; exec sleep 600; fi\necho '${JSON.stringify(credential)}'\n`,
    { mode: 0o755 },
  );
  writeFileSync(hangs, '');
  mkdirSync(pids);
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(
    { name: 'cluster', server: server.url, caData: btoa(server.caPem), skipTLSVerify: false },
    { name: 'user', exec: { apiVersion: credential.apiVersion, command: plugin, args: [] } },
  );
  const running = (): number[] =>
    readdirSync(pids)
      .map(Number)
      .filter(
        (pid) => existsSync(`/proc/${pid}`) && !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z'),
      );
  onTestFinished(() => running().forEach((pid) => process.kill(pid, 'SIGKILL')));
  return {
    kubeConfig,
    hangs,
    running,
    started: (count: number) => expect.poll(() => readdirSync(pids)).toHaveLength(count),
  };
}

const never = new AbortController().signal;

async function first(values: AsyncIterable<string>): Promise<string | undefined> {
  for await (const value of values) return value;
  return undefined;
}

describe.each(['request', 'lines'] as const)('clusterClient().%s()', (method) => {
  const call = (client: ReturnType<typeof clusterClient>, signal: AbortSignal): Promise<unknown> =>
    method === 'request' ? client.request({ ...version, signal }) : first(client.lines({ ...lines, signal }));

  test('gives up a plugin that hangs after 30 s', async () => {
    const { kubeConfig, started } = await pluginScene();
    const clock = new FakeClock();
    const answer = call(clusterClient({ kubeConfig, clock }), never);
    const rejected = expect(answer).rejects.toThrow('the credentials took over 30 s');
    await started(1);
    await clock.advance(30_000);
    await rejected;
  });

  test('gives up a plugin that hangs when its signal aborts', async () => {
    const { kubeConfig, started } = await pluginScene();
    const abort = new AbortController();
    const answer = call(clusterClient({ kubeConfig }), abort.signal);
    const rejected = expect(answer).rejects.toThrow('enough');
    await started(1);
    abort.abort(new Error('enough'));
    await rejected;
  });
});

test('a token request gives up a plugin that hangs when its signal aborts', async () => {
  const { kubeConfig, started } = await pluginScene();
  const client = tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder', kubeConfig });
  const abort = new AbortController();
  const answer = client.requestToken({ audiences: ['a'], expirationSeconds: 600 }, { signal: abort.signal });
  const rejected = expect(answer).rejects.toThrow('enough');
  await started(1);
  abort.abort(new Error('enough'));
  await rejected;
});

test('plugins that hang again and again are ended, with all that they have started', async () => {
  const { kubeConfig, started, running } = await pluginScene();
  const client = clusterClient({ kubeConfig });
  for (let count = 1; count <= 7; count += 1) {
    const abort = new AbortController();
    const answer = client.request({ ...version, signal: abort.signal });
    const rejected = expect(answer).rejects.toThrow('enough');
    await started(count);
    abort.abort(new Error('enough'));
    await rejected;
  }
  await expect.poll(running).toEqual([]);
});

/** A server, and a client with a kubeconfig file whose plugin is this script; it notes each of its starts. */
async function scriptScene(script: (token: string) => string, exec: Record<string, unknown> = {}) {
  const { server, directory } = await clusterScene();
  const { token } = await server.mint('ci', 'builder');
  mkdirSync(join(directory, 'bin'));
  const [plugin, starts] = [join(directory, 'bin', 'plugin'), join(directory, 'starts')];
  writeFileSync(plugin, `#!/bin/sh\necho >> ${starts}\n${script(token)}\n`, { mode: 0o755 });
  const clock = new FakeClock(Date.now());
  const kubeConfig = join(directory, 'config');
  const file = {
    clusters: [
      {
        name: 'c',
        cluster: {
          server: server.url,
          'certificate-authority-data': btoa(server.caPem),
          extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { region: 'here' } }],
        },
      },
    ],
    users: [{ name: 'u', user: { exec: { apiVersion: API_VERSION, command: './bin/plugin', ...exec } } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(kubeConfig, JSON.stringify(file));
  const client = clusterClient({ kubeConfig, clock });
  return {
    server,
    directory,
    clock,
    token,
    kubeConfig,
    ask: (signal = never) => client.request({ method: 'GET', path: '/api/v1/pods', signal }),
    starts: () => (existsSync(starts) ? readFileSync(starts, 'utf8').length : 0),
  };
}

const API_VERSION = 'client.authentication.k8s.io/v1';
const printing = (status: object): string => `echo '${JSON.stringify({ kind: 'ExecCredential', status })}'`;

test('a command with a relative path is found from the directory of the kubeconfig', async () => {
  const { ask, server } = await scriptScene((token) => printing({ token }));
  await ask();
  expect(server.requests).toMatchObject([{ status: 200 }]);
});

test('a credential without a date is kept until the server refuses it, and requests share a run', async () => {
  const { ask, starts, server, clock } = await scriptScene((token) => printing({ token }));
  await Promise.all(Array.from({ length: 20 }, () => ask()));
  await clock.advance(24 * 3_600_000);
  await ask();
  expect(starts()).toBe(1);
  await server.rotateSigningKey();
  await expect(ask()).rejects.toMatchObject({ status: 401 });
  expect(starts()).toBe(1);
  await expect(ask()).rejects.toMatchObject({ status: 401 });
  expect(starts()).toBe(2);
});

test('a credential is kept until it expires, by either clock', async () => {
  const { ask, starts, clock } = await scriptScene((token) =>
    printing({ token, expirationTimestamp: new Date(Date.now() + 600_000).toISOString() }),
  );
  await ask();
  await ask();
  expect(starts()).toBe(1);
  clock.jump(-3_600_000);
  await ask();
  expect(starts()).toBe(1);
  await clock.advance(601_000);
  await ask();
  expect(starts()).toBe(2);
});

test('a token request forgets the credential that the server refuses', async () => {
  const { kubeConfig, starts, server } = await scriptScene((token) => printing({ token }));
  const client = tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder', kubeConfig });
  const mint = () => client.requestToken({ audiences: [], expirationSeconds: 600 }, { signal: never });
  await mint();
  await mint();
  expect(starts()).toBe(1);
  await server.rotateSigningKey();
  await expect(mint()).rejects.toMatchObject({
    code: 'ERR_TOKEN_UNAUTHORIZED',
    message: expect.stringContaining('the credentials of the plugin') as string,
  });
  await expect(mint()).rejects.toMatchObject({ code: 'ERR_TOKEN_UNAUTHORIZED' });
  expect(starts()).toBe(2);
});

test('the plugin learns of the cluster if the kubeconfig says so', async () => {
  const { ask, directory, server } = await scriptScene(
    (token) => `printf %s "$KUBERNETES_EXEC_INFO $EXTRA" > "$0.info"; ${printing({ token })}`,
    { provideClusterInfo: true, env: [{ name: 'EXTRA', value: 'more' }] },
  );
  await ask();
  const [info = '', extra] = readFileSync(join(directory, 'bin', 'plugin.info'), 'utf8').split(' ');
  expect(JSON.parse(info)).toMatchObject({
    apiVersion: API_VERSION,
    kind: 'ExecCredential',
    spec: { cluster: { server: server.url, config: { region: 'here' } } },
  });
  expect(extra).toBe('more');
});

test('a variable that the kubeconfig gives a plugin takes precedence over that of this process', async () => {
  vi.stubEnv('PROFILE', 'mine');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { ask, directory } = await scriptScene(
    (token) => `printf %s "$PROFILE" > "$0.profile"; ${printing({ token })}`,
    { env: [{ name: 'PROFILE', value: 'of-the-cluster' }] },
  );
  await ask();
  expect(readFileSync(join(directory, 'bin', 'plugin.profile'), 'utf8')).toBe('of-the-cluster');
});

test.each([
  [
    'is missing',
    '',
    { command: './none', installHint: 'get it from the vendor' },
    /none".* was not found; get it/,
  ],
  ['is nowhere in PATH', '', { command: 'no-such-plugin-here' }, /was not found/],
  ['is a directory', '', { command: './bin' }, /may not be executed/],
  ['has no name', '', { command: null }, /has no "command"/],
  ['wants a terminal', '', { interactiveMode: 'Always' }, /there is no terminal/],
  [
    'fails',
    'echo "no login: eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln" >&2; exit 3',
    {},
    /with code 3: no login: \[redacted\]$/,
  ],
  ['is killed', 'kill -KILL $$', {}, /by SIGKILL/],
  ['prints no JSON', 'echo s3cret-token', {}, /is not JSON/],
  ['prints no status', 'echo "{}"', {}, /has no "status"/],
  ['gives nothing', printing({}), {}, /neither token nor certificate/],
  ['gives half a pair', printing({ clientKeyData: 'x' }), {}, /only one of client certificate and key/],
  ['gives a token of two lines', printing({ token: 'a\\nb' }), {}, /does not fit a header/],
  ['gives no date', printing({ token: 'a', expirationTimestamp: 'soon' }), {}, /is not a date/],
  ['prints without end', 'exec yes s3cret-token', {}, /printed more than \d+ bytes to stdout/],
  ['complains without end', 'exec yes s3cret-token >&2', {}, /printed more than \d+ bytes to stderr/],
])('a plugin that %s is told by a code of its own', async (_, script, exec, message) => {
  const { ask, server, kubeConfig } = await scriptScene(() => script, exec);
  const error = (await ask().catch((reason: unknown) => reason)) as Error;
  expect(error).toMatchObject({ name: 'KubernetesError', code: 'ERR_EXEC_PLUGIN' });
  expect(error.message).toMatch(message);
  expect(inspect(error, { depth: Infinity })).not.toMatch(/s3cret|eyJ/);
  const client = tokenRequestClient({ namespace: 'ci', serviceAccount: 'builder', kubeConfig });
  await expect(
    client.requestToken({ audiences: [], expirationSeconds: 600 }, { signal: never }),
  ).rejects.toMatchObject({ code: 'ERR_TOKEN_PLUGIN' });
  expect(server.requests).toEqual([]);
});

test('a plugin that leaves a child with its output does not hold up the request', async () => {
  const { ask, starts, clock, directory } = await scriptScene(
    (token) => `${printing({ token })}; sleep 600 & echo $! > "$0.pid"`,
  );
  const answer = ask();
  await expect.poll(starts).toBe(1);
  onTestFinished(() => {
    process.kill(Number(readFileSync(join(directory, 'bin', 'plugin.pid'), 'utf8')), 'SIGKILL');
  });
  let isAnswered = false;
  void answer.then(() => (isAnswered = true));
  await expect
    .poll(async () => {
      await clock.advance(1_000);
      return isAnswered;
    })
    .toBe(true);
});

test('a plugin that was given up is no longer read', async () => {
  const { ask, starts, directory } = await scriptScene(
    () => `trap '' TERM; while :; do head -c 100000 /dev/zero; sleep 0.1; echo >> "$0.alive"; done`,
  );
  const abort = new AbortController();
  const answer = ask(abort.signal);
  await expect.poll(starts).toBe(1);
  const rejected = expect(answer).rejects.toThrow('enough');
  abort.abort(new Error('enough'));
  await rejected;
  const alive = join(directory, 'bin', 'plugin.alive');
  const size = (): number => (existsSync(alive) ? readFileSync(alive).length : 0);
  let before = -1;
  await expect.poll(() => [before, (before = size())].reduce((a, b) => b - a), { interval: 500 }).toBe(0);
});
