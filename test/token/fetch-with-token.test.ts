import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import {
  fetchWithToken,
  TokenFile,
  tokenFromText,
  TokenRefresher,
  type ServiceAccountToken,
  type TokenSource,
} from 'resilient-watcher';
import { FakeTokenClient, mintTestToken } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { ProjectedToken } from '../support/projected-token.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** A server that takes one token, and remembers what was sent. */
async function server(accepts: (token: string) => boolean) {
  const requests: { token: string; body: string; type: string | undefined }[] = [];
  const http = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const token = (request.headers.authorization ?? '').replace('Bearer ', '');
      requests.push({ token, body: Buffer.concat(chunks).toString(), type: request.headers['content-type'] });
      response.writeHead(accepts(token) ? 200 : 401).end(accepts(token) ? 'welcome' : 'who are you?');
    });
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/`, requests };
}

function rotatingFile() {
  const [first, second] = [mintTestToken({ jti: '1' }), mintTestToken({ jti: '2' })];
  const projected = new ProjectedToken(`${first}\n`);
  const file = new TokenFile(projected.path, projected.options);
  onTestFinished(() => file.close());
  return { file, first, second, rotate: () => projected.replace(`${second}\n`) };
}

test.each<[string, RequestInit | undefined, string]>([
  ['no body', undefined, ''],
  ['text', { method: 'POST', body: 'text' }, 'text'],
  ['bytes', { method: 'PUT', body: Buffer.from('bytes') }, 'bytes'],
  ['a form', { method: 'POST', body: new URLSearchParams({ a: '1' }) }, 'a=1'],
  ['a blob', { method: 'POST', body: new Blob(['blob']) }, 'blob'],
])('a request with %s that gets 401 is repeated once with the new token', async (_, init, body) => {
  const { file, first, second, rotate } = rotatingFile();
  const { url, requests } = await server((token) => token === second);
  await file.get();
  rotate();
  const response = await fetchWithToken(file)(url, init);
  expect([response.status, await response.text()]).toEqual([200, 'welcome']);
  expect(requests.map(({ token }) => token)).toEqual([first, second]);
  expect(requests.map((request) => request.body)).toEqual([body, body]);
});

test.each<[string, (url: string) => Parameters<typeof fetch>]>([
  ['a stream', (url) => [url, { method: 'POST', body: new Blob(['once']).stream(), duplex: 'half' }]],
  ['a Request with a body', (url) => [new Request(url, { method: 'POST', body: 'once' })]],
])(
  'a request with %s is not repeated: its 401 is returned, and the next request succeeds',
  async (_, request) => {
    const { file, second, rotate } = rotatingFile();
    const { url, requests } = await server((token) => token === second);
    await file.get();
    rotate();
    const send = fetchWithToken(file);
    expect((await send(...request(url))).status).toBe(401);
    expect(requests.map(({ body }) => body)).toEqual(['once']);
    expect((await send(url)).status).toBe(200);
  },
);

test('without another token the 401 is returned, with its body unread', async () => {
  const { file } = rotatingFile();
  const { url, requests } = await server(() => false);
  const response = await fetchWithToken(file)(new Request(url, { headers: { 'content-type': 'x/y' } }));
  expect([response.status, await response.text()]).toEqual([401, 'who are you?']);
  expect(requests).toMatchObject([{ type: 'x/y' }]);
});

test('without a token no request is sent', async () => {
  const { url, requests } = await server(() => true);
  await using file = new TokenFile(join(temporaryDirectory(), 'none'));
  await expect(fetchWithToken(file)(url)).rejects.toMatchObject({ code: 'ERR_TOKEN_UNAVAILABLE' });
  expect(requests).toEqual([]);
});

test('a TokenRefresher can be the source', async () => {
  const client = new FakeTokenClient();
  const { url } = await server((token) => client.accepts(token));
  await using refresher = new TokenRefresher({ client, tokenFile: false, minIntervalMs: 0, wakeJitterMs: 0 });
  await refresher.start();
  client.rotateSigningKey();
  expect((await fetchWithToken(refresher)(url)).status).toBe(200);
});

test.each([[{}], [undefined], ['token'], [{ token: () => 'x' }]])(
  'fetchWithToken(%j) throws immediately, not at the first request',
  (source) => {
    const make = (): unknown => fetchWithToken(source as never);
    expect(make).toThrow(TypeError);
    expect(make).toThrow('fetchWithToken: source must be an object with get()');
  },
);

/** Sources that differ only in what they do after a 401. */
function sourceWith(reportUnauthorized: () => Promise<ServiceAccountToken>): TokenSource {
  const current = tokenFromText('first', 'opaque');
  return { current, get: () => Promise.resolve(current), reportUnauthorized };
}

test('a 401 whose body cannot be canceled is still followed by the request with the next token', async () => {
  const broken = new ReadableStream({ start: (controller) => controller.error(new Error('reset')) });
  const answers = [new Response(broken, { status: 401 }), new Response('welcome')];
  const source = sourceWith(() => Promise.resolve(tokenFromText('second', 'opaque')));
  const send = fetchWithToken(source, { fetch: () => Promise.resolve(answers.shift() as Response) });
  expect(await (await send('http://host/')).text()).toBe('welcome');
});

test('a Request of another implementation keeps its headers, and its body is sent once', async () => {
  const sent: (string | null)[] = [];
  const send = fetchWithToken(
    sourceWith(() => Promise.resolve(tokenFromText('second', 'opaque'))),
    {
      fetch: (_, init) => {
        sent.push(new Headers(init?.headers).get('x-mine'));
        return Promise.resolve(new Response('', { status: 401 }));
      },
    },
  );
  const request = { url: 'http://host/', headers: { 'x-mine': '1' }, body: new ReadableStream() };
  expect((await send(request as never)).status).toBe(401);
  expect(sent).toEqual(['1']);
});

test('a signal that aborts ends the wait for a token, before the request and after a 401', async () => {
  const never = new Promise<never>(() => {});
  const refused = { fetch: () => Promise.resolve(new Response('', { status: 401 })) };
  const waiting = new AbortController();
  const first = fetchWithToken({ current: undefined, get: () => never }, refused);
  const before = first('http://host/', { signal: waiting.signal });
  const after = fetchWithToken(
    sourceWith(() => never),
    refused,
  )(new Request('http://host/', { signal: waiting.signal }));
  setImmediate(() => waiting.abort(new Error('enough')));
  await expect(before).rejects.toThrow('enough');
  expect((await after).status).toBe(401);
});

test('a source without reportUnauthorized() is asked once more after a 401', async () => {
  const [first, second] = ['1', '2'].map((jti) => tokenFromText(mintTestToken({ jti }))) as [
    ServiceAccountToken,
    ServiceAccountToken,
  ];
  let current = first;
  const { url } = await server((token) => token === second.value);
  const source = { current, get: () => Promise.resolve(current) };
  const send = fetchWithToken(source);
  expect((await send(url)).status).toBe(401);
  const sending = send(url, { method: 'POST', body: 'x' });
  current = second;
  expect((await sending).status).toBe(200);
});

test.each<[string, (url: string) => string | URL | Request]>([
  ['text', (url) => url],
  ['a URL', (url) => new URL(url)],
  ['a Request', (url) => new Request(url)],
])('a 401 of another origin, to which a redirect of %s leads, refuses no token', async (_, input) => {
  const other = await server(() => false);
  const first = createServer((_request, response) => response.writeHead(302, { location: other.url }).end());
  await new Promise<void>((resolve) => first.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void first.close());
  const reported: string[] = [];
  const source: TokenSource = {
    ...sourceWith(() => Promise.resolve(tokenFromText('second', 'opaque'))),
    reportUnauthorized: (token) => {
      reported.push(token.value);
      return Promise.resolve(token);
    },
  };
  const url = `http://127.0.0.1:${(first.address() as AddressInfo).port}/`;
  const response = await fetchWithToken(source)(input(url));
  expect([response.status, response.url, reported]).toEqual([401, other.url, []]);
  expect(other.requests.map(({ token }) => token)).toEqual(['']);
});
