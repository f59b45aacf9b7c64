/** Kubeconfig files as client-go reads them: fields that client-node drops, and several files. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { inspect } from 'node:util';

import { clusterClient, tokenRequestClient } from 'resilient-watcher/kubernetes';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

const never = new AbortController().signal;

/** A server that says in its refusal what it was sent, and files that name it. */
async function scene() {
  const seen: NodeJS.Dict<string | string[]>[] = [];
  const server = createServer(({ headers, headersDistinct }, response) => {
    seen.push({ ...headers, groups: headersDistinct['impersonate-group'] });
    const { authorization = '' } = headers;
    const [, login = ''] = /^Basic (.*)/.exec(authorization) ?? [];
    const message = `you sent ${authorization} (${atob(login)}, ${encodeURIComponent(authorization)})`;
    response.writeHead(409).end(JSON.stringify({ kind: 'Status', message }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const directory = temporaryDirectory();
  const write = (name: string, config: object): string => {
    const path = join(directory, name);
    writeFileSync(path, JSON.stringify(config));
    return path;
  };
  const cluster = { name: 'c', cluster: { server: url, 'insecure-skip-tls-verify': true } };
  const context = { name: 'x', context: { cluster: 'c', user: 'u' } };
  return {
    seen,
    directory,
    write,
    cluster,
    context,
    /** Asks as this user; resolves to the error. */
    async as(user: object): Promise<Error> {
      const kubeConfig = write('config', {
        clusters: [cluster],
        users: [{ name: 'u', user }],
        contexts: [context],
        'current-context': 'x',
      });
      return ask(kubeConfig);
    },
    ask,
  };
}

async function ask(kubeConfig: string): Promise<Error> {
  const request = { method: 'GET', path: '/api', signal: never } as const;
  const error: unknown = await clusterClient({ kubeConfig })
    .request(request)
    .catch((reason: unknown) => reason);
  return error as Error;
}

test.each([['tokenFile'], ['token-file']])(
  '%s of a user is read for each request, beside the file',
  async (field) => {
    const { as, seen, directory } = await scene();
    mkdirSync(join(directory, 'sub'));
    for (const token of ['opaque-token-1', 'opaque-token-2']) {
      writeFileSync(join(directory, 'sub', 'token'), `${token}\n`);
      await as({ [field]: 'sub/token', token: 'opaque-token-0' });
      expect(seen.at(-1)?.['authorization']).toBe(`Bearer ${token}`);
    }
  },
);

test('a token stands in for a token file that cannot be read', async () => {
  const { as, seen } = await scene();
  await as({ tokenFile: '/nowhere/token', token: 'opaque-token-0' });
  expect(seen.at(-1)?.['authorization']).toBe('Bearer opaque-token-0');
  expect(await as({ tokenFile: '/nowhere/token' })).toMatchObject({ code: 'ERR_TOKEN_FILE' });
});

test('data take precedence over a file, which is not read', async () => {
  const { write, cluster, context } = await scene();
  const named = { ...cluster.cluster, 'certificate-authority': '/nowhere/ca.crt' };
  const config = (data: string): string =>
    write('config', {
      clusters: [{ name: 'c', cluster: { ...named, 'certificate-authority-data': data } }],
      users: [{ name: 'u', user: { token: 'opaque-token-0' } }],
      contexts: [context],
      'current-context': 'x',
    });
  expect((await ask(config(''))).message).toContain('/nowhere/ca.crt');
  expect((await ask(config('bm9uZQ=='))).message).toContain('certificate-authority-data');
});

test('everybody who is impersonated is named', async () => {
  const { as, seen } = await scene();
  const extra = { 'as-user-extra': { 'Reason/Why': ['because'] } };
  await as({ token: 'opaque-token-0', as: 'alice', 'as-groups': ['a', 'b'], 'as-uid': '7', ...extra });
  expect(seen.at(-1)).toMatchObject({
    'impersonate-user': 'alice',
    groups: ['a', 'b'],
    'impersonate-uid': '7',
    'impersonate-extra-reason%2fwhy': 'because',
  });
});

test.each([
  [
    'a number for a password',
    { username: 'me', password: 1234 },
    'ERR_KUBECONFIG',
    /"password" of its user "u" is not a text: put it in quotes/,
  ],
  [
    'a group that is no list',
    { 'as-groups': 'admins' },
    'ERR_KUBECONFIG',
    /"as-groups" of its user "u" is not a list/,
  ],
  [
    'a command of an old provider',
    { 'auth-provider': { name: 'gcp', config: { 'cmd-path': 'gcloud', 'access-token': 's3cret-token' } } },
    'ERR_KUBECONFIG',
    /the auth-provider "gcp" of its user "u" was removed/,
  ],
])('%s is refused by name', async (_, user, code, message) => {
  const { as, seen } = await scene();
  const error = await as(user);
  expect(error).toMatchObject({ code });
  expect(error.message).toMatch(message);
  expect(inspect(error)).not.toMatch(/1234|s3cret/);
  expect(seen).toEqual([]);
});

const quotes: readonly [string, object][] = [
  ['a token', { token: 's3cret-token-1' }],
  ['a token file', { tokenFile: 'token' }],
  ['a password', { username: 'me', password: 's3cret-password' }],
  ['the token of a plugin', { exec: { command: './plugin', apiVersion: 'v1' } }],
  [
    'the token of a provider',
    { 'auth-provider': { name: 'gcp', config: { 'access-token': 's3cret-access' } } },
  ],
];
test.each(quotes)('%s that the server quotes is not shown', async (_, user) => {
  const { as, directory, seen } = await scene();
  writeFileSync(join(directory, 'token'), 's3cret-token-2');
  writeFileSync(join(directory, 'plugin'), `#!/bin/sh\necho '{"status":{"token":"s3cret-token-3"}}'\n`, {
    mode: 0o755,
  });
  const error = await as(user);
  expect(seen.at(-1)?.['authorization']).toBeDefined();
  expect(error.message).toMatch(/^you sent (?:Bearer |Basic )?\[redacted\]/);
  const shown = inspect(error, { depth: Infinity });
  expect(shown).not.toMatch(/s3cret|czNjcmV0|bWU6/);
  const client = tokenRequestClient({
    namespace: 'a',
    serviceAccount: 'b',
    kubeConfig: join(directory, 'config'),
  });
  const request = { audiences: [], expirationSeconds: 600 };
  const failure: unknown = await client
    .requestToken(request, { signal: never })
    .catch((reason: unknown) => reason);
  expect(inspect(failure, { depth: Infinity })).toContain('you sent');
  expect(inspect(failure, { depth: Infinity })).not.toMatch(/s3cret|czNjcmV0|bWU6/);
});

test('several files are merged as kubectl does it: the first of a name counts', async () => {
  const { ask, write, seen, cluster, context, directory } = await scene();
  writeFileSync(join(directory, 'token'), 'opaque-token-7');
  const first = write('first', {
    users: [{ name: 'u', user: { tokenFile: 'token' } }],
    'current-context': '',
  });
  const second = write('second', {
    users: [{ name: 'u', user: { token: 'opaque-token-8', as: 'alice' } }],
    clusters: [cluster],
    contexts: [context],
    'current-context': 'x',
  });
  const third = write('third', { 'current-context': 'none' });
  await ask(['', first, join(directory, 'missing'), second, third].join(delimiter));
  expect(seen.at(-1)).toMatchObject({ authorization: 'Bearer opaque-token-7' });
  expect(seen.at(-1)?.['impersonate-user']).toBeUndefined();
  expect(await ask(['/nowhere/a', '/nowhere/b'].join(delimiter))).toMatchObject({
    code: 'ERR_KUBECONFIG',
    message: expect.stringContaining('none of these files exists') as string,
  });
});

test('a file whose name contains the separator is one file', async () => {
  const { as, ask, seen, directory } = await scene();
  await as({ token: 'opaque-token-0' });
  const name = join(directory, `a${delimiter}b`);
  symlinkSync('config', name);
  await ask(name);
  expect(seen).toHaveLength(2);
});
