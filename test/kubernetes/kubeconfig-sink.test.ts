import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { AuthenticationV1Api, KubeConfig } from '@kubernetes/client-node';
import { ServiceAccountToken, tokenFromText } from 'resilient-watcher';
import { kubeconfigSink, type KubeconfigSinkOptions } from 'resilient-watcher/kubernetes';
import { expect, test } from 'vitest';

import { clusterScene } from '../support/cluster-scene.js';
import { interceptedFs } from '../support/intercepted-fs.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const signal = new AbortController().signal;

async function userOf(path: string): Promise<unknown> {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromFile(path);
  const api = kubeConfig.makeApiClient(AuthenticationV1Api);
  return (await api.createSelfSubjectReview({ body: {} })).status?.userInfo?.username;
}

test('what it writes works, is for the owner only, and follows the token and the CA', async () => {
  const { server, directory, caFile, project } = await clusterScene();
  const path = join(directory, 'calico-kubeconfig');
  const sink = kubeconfigSink({ path, server: server.url, caFile, user: 'calico', clusterName: 'local' });
  expect(sink.name).toBe(path);
  await sink(tokenFromText(await project()), { signal });
  expect(await userOf(path)).toBe('system:serviceaccount:ci:builder');
  expect(statSync(path).mode & 0o777).toBe(0o600);

  await server.rotateSigningKey();
  await server.rotateCertificates();
  await expect(userOf(path)).rejects.toThrow();
  await sink(tokenFromText(await project()), { signal });
  expect(await userOf(path)).toBe('system:serviceaccount:ci:builder');
});

test.skip('a CA that is being swapped while it is read is read as a whole', async () => {
  const { server, directory, caFile, project } = await clusterScene();
  const path = join(directory, 'kubeconfig');
  const token = tokenFromText(await project());
  const link = join(dirname(caFile), '..data');
  renameSync(link, `${link}_away`);
  let calls = 0;
  const fs = interceptedFs(({ make }) => {
    calls += 1;
    if (calls === 20) renameSync(`${link}_away`, link);
    return make();
  });
  await kubeconfigSink({ path, server: server.url, caFile, fs })(token, { signal });
  expect(readFileSync(path, 'utf8')).toContain('certificate-authority-data');
});

test.each<[string, (caFile: string) => void]>([
  ['is missing', (caFile) => rmSync(caFile)],
  ['is half written', (caFile) => writeFileSync(caFile, readFileSync(caFile).subarray(0, 200))],
  ['is empty', (caFile) => writeFileSync(caFile, '')],
])('when the CA %s nothing is written, and the last good file stays', async (_, harm) => {
  const { server, directory, project } = await clusterScene();
  const caFile = join(directory, 'ca.pem');
  writeFileSync(caFile, server.caPem);
  const path = join(directory, 'kubeconfig');
  const sink = kubeconfigSink({ path, server: server.url, caFile });
  await sink(tokenFromText(await project()), { signal });
  const good = readFileSync(path, 'utf8');
  harm(caFile);
  const next = sink(tokenFromText(await project()), { signal });
  await expect(next).rejects.toMatchObject({ code: 'ERR_KUBECONFIG' });
  expect(readFileSync(path, 'utf8')).toBe(good);
});

test.each<[string, Partial<Record<keyof KubeconfigSinkOptions, unknown>>, string]>([
  ['no path', { path: undefined }, 'option "path" must be a non-empty string'],
  ['no server', { server: undefined }, 'option "server" must be an http(s) URL'],
  ['two sources of the CA', { caData: 'x', caFile: 'y' }, 'give "caData" or "caFile", not both'],
  ['a CA that is none', { caData: 'ca.crt' }, 'option "caData" is not a bundle of PEM certificates'],
])('%s is refused at once', (_, change, reason) => {
  const options = { path: '/tmp/never-written', server: 'https://a', ...change } as KubeconfigSinkOptions;
  expect(() => kubeconfigSink(options)).toThrow(reason);
});

test('a wrong option of the write fails the delivery', async () => {
  const path = join(temporaryDirectory(), 'kubeconfig');
  const dates = { issuedAt: 0, notBefore: 0, expiresAt: Infinity, notAfter: Infinity };
  const sink = kubeconfigSink({ path, server: 'https://a', mode: 0o77777 });
  await expect(sink(new ServiceAccountToken('t', dates), { signal })).rejects.toThrow('option "mode"');
  expect(existsSync(path)).toBe(false);
});
