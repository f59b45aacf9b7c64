import { mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { inspect } from 'node:util';

import { AuthenticationV1Api, KubeConfig } from '@kubernetes/client-node';
import { ServiceAccountToken, tokenFromText, type TokenSink } from 'resilient-watcher';
import { kubeconfigSink, type KubeconfigSinkOptions } from 'resilient-watcher/kubernetes';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

import { clusterScene } from '../support/cluster-scene.js';
import { fsWith } from '../support/intercepted-fs.js';
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
  const fs = fsWith({
    each: ({ make }) => {
      calls += 1;
      if (calls === 20) renameSync(`${link}_away`, link);
      return make();
    },
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

test.each<[string, Partial<Record<keyof KubeconfigSinkOptions | 'ca', unknown>>, string]>([
  ['no path', { path: undefined }, 'option "path" must be a non-empty string'],
  ['no server', { server: undefined }, 'option "server" must be an http(s) URL'],
  ['two sources of the CA', { caData: 'x', caFile: 'y' }, 'give "caData" or "caFile", not both'],
  ['an unknown option', { ca: 'x' }, 'kubeconfigSink: unknown option "ca"; known are path, server, caData,'],
  ['a mode that is none', { mode: 0o77777 }, 'kubeconfigSink: option "mode" must be'],
  ['a CA that is none', { caData: 'ca.crt' }, 'option "caData" is not a bundle of PEM certificates'],
])('%s is refused at once', (_, change, reason) => {
  const options = { path: '/tmp/never-written', server: 'https://a', ...change } as KubeconfigSinkOptions;
  expect(() => kubeconfigSink(options)).toThrow(reason);
});

test('a CA file that holds none is refused at once; one that does not exist may follow', () => {
  const directory = temporaryDirectory();
  const caFile = join(directory, 'ca.crt');
  const make = (): unknown =>
    kubeconfigSink({ path: join(directory, 'config'), server: 'https://a', caFile });
  expect(make).not.toThrow();
  mkdirSync(caFile);
  expect(make).toThrow(/Cannot read the CA in .+ca\.crt: it is not a file/);
  rmSync(caFile, { recursive: true });
  writeFileSync(caFile, 'c2VjcmV0');
  expect(make).toThrow(/The CA in .+ca\.crt is not a bundle of PEM certificates \(0 found in 8 characters\)/);
});

type Kubeconfig = Readonly<Record<'clusters' | 'users' | 'contexts', readonly object[]>>;

describe('with merge', () => {
  const dates = { issuedAt: 0, notBefore: 0, expiresAt: Infinity, notAfter: Infinity };
  const deliver = (sink: TokenSink, text = 'new-token'): unknown =>
    sink(new ServiceAccountToken(text, dates), { signal });
  const own = { server: 'https://a', clusterName: 'here', user: 'robot', namespace: 'shop' };

  function existing(text: string): { path: string; sink: TokenSink; text: () => string } {
    const path = join(temporaryDirectory(), 'config');
    writeFileSync(path, text);
    return {
      path,
      sink: kubeconfigSink({ path, ...own, merge: true }),
      text: () => readFileSync(path, 'utf8'),
    };
  }

  const OTHERS = `# ours
apiVersion: v1
kind: Config
preferences: { colors: true }
clusters:
  - name: prod # the real one
    cluster: { server: 'https://prod', certificate-authority-data: ${'QUJD'.repeat(60)} }
users:
  - name: "yes"
    user:
      exec:
        apiVersion: client.authentication.k8s.io/v1
        command: aws
        args: [eks, get-token, --cluster-name, 0123]
contexts:
  - name: prod
    context: { cluster: prod, user: "yes" }
current-context: prod
`;

  test('an existing kubeconfig keeps its other clusters, users, contexts, current context and comments', async () => {
    const { path, sink, text } = existing(OTHERS);
    for (const token of ['first', 'second']) await deliver(sink, token);
    for (const version of ['1.1', '1.2'] as const) {
      const [before, after] = [OTHERS, text()].map((each) => parse(each, { version }) as Kubeconfig);
      expect(after).toMatchObject({
        ...before,
        ...{ clusters: [before?.clusters[0], {}], users: [before?.users[0], {}] },
        contexts: [before?.contexts[0], {}],
      });
    }
    for (const kept of ['# ours', '# the real one', '--cluster-name, 0123', "'https://prod'"]) {
      expect(text()).toContain(kept);
    }
    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromFile(path);
    expect(kubeConfig.clusters.map(({ name }) => name)).toEqual(['prod', 'here']);
    expect(kubeConfig.users.map(({ name, token }) => [name, token])).toEqual([
      ['yes', undefined],
      ['robot', 'second'],
    ]);
    expect(kubeConfig.getCurrentContext()).toBe('prod');
    expect(kubeConfig.getContextObject('robot@here')).toMatchObject({ cluster: 'here', namespace: 'shop' });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test('its own entries of an earlier run are replaced in their places', async () => {
    const { sink, text } = existing(OTHERS.replaceAll('prod', 'here').replaceAll('"yes"', 'robot'));
    await deliver(sink);
    expect(text()).toMatch(/name: "robot"\n +user:\n +token: "new-token"/);
    expect(text()).not.toMatch(/aws|https:\/\/prod/);
  });

  test.each([
    ['a missing one', undefined],
    ['an empty one', ''],
    ['one of comments', '# nothing yet\n'],
    ['one without lists', 'kind: Config\napiVersion: v1\nclusters: null\ncurrent-context: ""\n'],
    ['JSON', JSON.stringify({ kind: 'Config', apiVersion: 'v1', clusters: [], users: [], contexts: [] })],
    ['JSON without a current context', JSON.stringify({ kind: 'Config', 'current-context': '' })],
  ])('%s becomes a kubeconfig', async (_name, before) => {
    const { path, sink } = existing(before ?? '');
    if (before === undefined) rmSync(path);
    await deliver(sink);
    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromFile(path);
    expect(kubeConfig.getCurrentUser()).toMatchObject({ name: 'robot', token: 'new-token' });
    expect(kubeConfig.getCurrentCluster()?.server).toBe('https://a');
  });

  test.each([
    ['no YAML', 'users:\n  - token: "secret\n', /it is not YAML at line \d+ \([A-Z_]+\); it was not changed/],
    ['two documents', 'a: secret\n---\nb: 1\n', /it is not YAML at line 2/],
    ['a list', '- secret\n', /it is no kubeconfig/],
    ['a map of users', 'users: { secret: 1 }\n', /"users" in it is not a list/],
  ])('%s is left as it is, and the error does not quote it', async (_name, before, says) => {
    const { sink, text } = existing(before);
    const failed = await Promise.resolve(deliver(sink)).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'ERR_KUBECONFIG', message: expect.stringMatching(says) as string });
    expect(inspect(failed)).not.toMatch(/secret|new-token/);
    expect(text()).toBe(before);
  });

  test.each([
    ['only comments', '# about nothing yet\n# and more\n'],
    [
      'comments around the entries that are replaced',
      `clusters:
# about the cluster
- name: here
  cluster:
    server: https://old
    # at the end of the cluster
# about the next one
- name: other
  cluster: { server: 'https://b' }
users: # about no users
# more of it
contexts: []
# at the end
`,
    ],
  ])('%s are kept', async (_name, before) => {
    const { sink, text } = existing(before);
    for (const token of ['first', 'second']) await deliver(sink, token);
    for (const [, comment = ''] of before.matchAll(/# (.+)/g)) expect(text()).toContain(`# ${comment}`);
    expect(text()).not.toContain('https://old');
    expect((parse(text()) as Kubeconfig).clusters.at(0)).toMatchObject({ name: 'here' });
  });

  test('an entry whose anchor is used elsewhere is replaced, and the others keep what it stood for', async () => {
    const { sink, text } = existing(`clusters:
- name: here
  cluster: &it
    server: https://old
    certificate-authority-data: &ca QUJD
- { name: two, cluster: *it }
- { name: three, cluster: { server: 'https://c', certificate-authority-data: *ca } }
users: []
contexts: []
`);
    for (const token of ['first', 'second']) await deliver(sink, token);
    expect((parse(text()) as Kubeconfig).clusters).toEqual([
      { name: 'here', cluster: { server: 'https://a' } },
      { name: 'two', cluster: { server: 'https://old', 'certificate-authority-data': 'QUJD' } },
      { name: 'three', cluster: { server: 'https://c', 'certificate-authority-data': 'QUJD' } },
    ]);
  });

  test('an alias without an anchor is told by a code, and nothing is written', async () => {
    const before = 'clusters: []\nusers: []\ncontexts: []\npreferences: *none\n';
    const { sink, text } = existing(before);
    await expect(deliver(sink)).rejects.toMatchObject({ code: 'ERR_KUBECONFIG' });
    expect(text()).toBe(before);
  });

  test('JSON with line ends of Windows keeps its indent', async () => {
    const { sink, text } = existing(JSON.stringify({ kind: 'Config' }, null, 4).replaceAll('\n', '\r\n'));
    await deliver(sink, 'first');
    expect(text()).toContain('\n    "kind": "Config"');
  });

  test.each([[0], [2], ['\t']])('JSON with an indent of %j stays JSON', async (indent) => {
    const others = { name: 'other', cluster: { server: 'https://b' } };
    const config = { kind: 'Config', clusters: [{ name: 'here', cluster: {} }, others], more: [1, 'x'] };
    const { sink, text } = existing(JSON.stringify(config, null, indent));
    for (const token of ['first', 'second']) await deliver(sink, token);
    const after = JSON.parse(text()) as Kubeconfig;
    expect(after).toMatchObject({
      ...config,
      clusters: [{ cluster: { server: 'https://a' } }, others],
      users: [{ name: 'robot', user: { token: 'second' } }],
      'current-context': 'robot@here',
    });
    expect(text()).toBe(`${JSON.stringify(after, null, indent)}\n`);
  });

  test('sinks of one file by different paths keep the entries of each other', async () => {
    const directory = temporaryDirectory();
    mkdirSync(join(directory, 'real'));
    symlinkSync('real', join(directory, 'link'));
    const paths = ['real/config', 'link/config', 'alias', './real/../real/config'].map((path) =>
      path.startsWith('.') ? relative(process.cwd(), join(directory, path)) : join(directory, path),
    );
    for (const before of [undefined, OTHERS]) {
      const file = join(directory, 'real/config');
      rmSync(file, { force: true });
      rmSync(join(directory, 'alias'), { force: true });
      symlinkSync('link/config', join(directory, 'alias'));
      if (before !== undefined) writeFileSync(file, before);
      const sinks = paths.map((path, index) => {
        const user = `robot-${index}`;
        return kubeconfigSink({ path, server: 'https://a', clusterName: user, user, merge: true });
      });
      await Promise.all(sinks.map((sink) => deliver(sink)));
      const { users } = parse(readFileSync(file, 'utf8')) as Kubeconfig;
      expect(users).toHaveLength(paths.length + (before === undefined ? 0 : 1));
    }
  });

  test('sinks of one file keep the entries of each other', async () => {
    const { path } = existing(OTHERS);
    const names = Array.from({ length: 8 }, (_, index) => `robot-${index}`);
    const sinks = names.map((user) =>
      kubeconfigSink({ path, server: 'https://a', clusterName: user, user, merge: true }),
    );
    await Promise.all(sinks.map((sink) => deliver(sink)));
    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromFile(path);
    expect(kubeConfig.users.map(({ name }) => name).sort()).toEqual([...names, 'yes'].sort());
    expect(sinks[0]?.name).toBe(path);
  });
});
