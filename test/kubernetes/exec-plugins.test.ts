/** Plugins of a kubeconfig (`exec`) that hang, such as one whose cloud does not answer. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { KubeConfig } from '@kubernetes/client-node';
import { clusterClient, tokenRequestClient } from 'resilient-watcher/kubernetes';
import { FakeClock } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

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

test('of plugins that hang again and again, only a few stay', async () => {
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
  await expect.poll(() => running().length).toBeLessThanOrEqual(4);
  expect(running()).not.toEqual([]);
});
