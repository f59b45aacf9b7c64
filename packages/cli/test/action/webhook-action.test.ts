import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';

import client, { Registry } from 'prom-client';
import { logTo } from 'resilient-watcher';
import { ReloadAction, webhookAction, type WebhookActionOptions } from '../../src/action.js';
import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { collectMetrics } from 'resilient-watcher/prometheus';
import { expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { shownBy } from '../../../../test/support/shown-by.js';

/** In the path, as in the webhooks of Slack and Discord. */
const TOKEN = 'T0ken-of-A-Workspace';

async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Everything that is shown of a webhook that is called once. */
async function shownOf(url: string): Promise<string> {
  const shown: string[] = [];
  const line = (fields: object, text: string): void => void shown.push(text, JSON.stringify(fields));
  const log = logTo({ debug: line, info: line, warn: line, error: line });
  const registry = new Registry();
  const metrics = collectMetrics({ client, registry });
  const reload = new ReloadAction({ action: webhookAction({ url }), maxAttempts: 1 });
  reload.on('failed', ({ error }) => shown.push(shownBy(error)));
  reload.trigger({ paths: [], cause: 'fs' });
  await reload.idle();
  shown.push(JSON.stringify(reload), await registry.metrics());
  await reload.close();
  log.close();
  metrics.close();
  return shown.join('\n');
}

test('a token in the path of a webhook is shown nowhere, whether the call succeeds or fails', async () => {
  const ok = await serve((_, response) => response.end());
  const refused = await serve((_, response) => response.writeHead(404).end());
  for (const [origin, says] of [
    [ok, 'succeeded'],
    [refused, 'status 404'],
    ['http://127.0.0.1:1', 'Action "POST http://127.0.0.1:1" failed'],
  ] as const) {
    const shown = await shownOf(`${origin}/services/${TOKEN}?key=${TOKEN}`);
    expect(shown).toContain(says);
    expect(shown).toContain(`POST ${origin}`);
    expect(shown).not.toContain(TOKEN);
  }
});

test('the reason of a refusal is shown, bounded, in one line and without secrets', async () => {
  const body = `no such hook:\n ${TOKEN} ${'x'.repeat(100_000)}`;
  const refused = await serve((_, response) => response.writeHead(410).end(body));
  const shown = await shownOf(`${refused}/services/${TOKEN}?key=${TOKEN}`);
  expect(shown).toContain('it answered with status 410: no such hook: [redacted] xxx');
  expect(shown).not.toContain(TOKEN);
  expect(shown.length).toBeLessThan(50_000);
});

test.each([200, 500])(
  'an answer %i that does not end keeps neither the run nor a connection',
  async (status) => {
    let open = 0;
    const url = await serve((_, response) => {
      open += 1;
      response.once('close', () => (open -= 1));
      response.writeHead(status).write('x'.repeat(20_000));
    });
    const { signal } = new AbortController();
    const run = webhookAction({ url }).run({ paths: [], cause: 'fs' }, { signal });
    if (status === 200) await run;
    else await expect(run).rejects.toThrow('status 500');
    await expect.poll(() => open).toBe(0);
  },
);

test('a server with a CA of its own gets the client certificate, from files that may be renewed', async () => {
  const [signer, stranger] = [new CertificateSigner(), new CertificateSigner()];
  const server = signer.issue({ dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] });
  const listener = createSecureServer(
    {
      cert: server.chain,
      key: server.key,
      ca: signer.certificate,
      requestCert: true,
      rejectUnauthorized: false,
    },
    (request, response) => response.writeHead((request.socket as TLSSocket).authorized ? 204 : 401).end(),
  ).listen(0, '127.0.0.1');
  onTestFinished(() => void listener.close());
  await once(listener, 'listening');
  const directory = temporaryDirectory();
  const [caFile, certFile, keyFile] = ['ca', 'cert', 'key'].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  const own = signer.issue({ dnsNames: ['client'] });
  writeFileSync(caFile, stranger.certificate);
  writeFileSync(certFile, own.chain);
  writeFileSync(keyFile, own.key);
  const url = `https://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const action = webhookAction({ url, caFile, certFile, keyFile });
  const run = (): Promise<void> =>
    action.run({ paths: [], cause: 'fs' }, { signal: new AbortController().signal });
  await expect(run()).rejects.toThrow(/certificate|issuer/);
  writeFileSync(caFile, signer.certificate);
  await run();
  await expect(
    webhookAction({ url, caFile }).run({ paths: [], cause: 'fs' }, { signal: new AbortController().signal }),
  ).rejects.toThrow('status 401');
  expect(() => webhookAction({ url, certFile })).toThrow('belong together');
  expect(() => webhookAction({ url: 'http://h/', caFile })).toThrow('need an https URL');
});

test.each([`htp//127.0.0.1/${TOKEN}`, `ftp://127.0.0.1/${TOKEN}`])(
  'what is no http(s) URL is refused without quoting it: %s',
  (url) => {
    let thrown: unknown;
    try {
      webhookAction({ url });
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(TypeError);
    expect(shownBy(thrown as Error)).not.toContain(TOKEN);
  },
);

test('a redirect is a failure, and the place it leads to is not called', async () => {
  const paths: unknown[] = [];
  const origin = await serve((request, response) => {
    paths.push(request.url);
    response.writeHead(307, { location: '/elsewhere' }).end();
  });
  expect(await shownOf(`${origin}/hook`)).toContain('status 307');
  expect(paths).toEqual(['/hook']);
});

test('headers and a bearer token are sent, a GET has no body, and the content type can be another one', async () => {
  const requests: IncomingHttpHeaders[] = [];
  const url = await serve((request, response) => {
    requests.push(request.headers);
    response.end();
  });
  const run = (options: Omit<WebhookActionOptions, 'url'>): Promise<void> =>
    webhookAction({ url, ...options }).run(
      { paths: [], cause: 'fs' },
      { signal: new AbortController().signal },
    );
  await run({ headers: { 'X-Key': 'yes' }, token: { get: () => Promise.resolve('opaque') } });
  await run({ method: 'GET', headers: { 'Content-Type': 'text/plain', 'User-Agent': 'mine' } });
  expect(requests).toMatchObject([
    {
      'x-key': 'yes',
      authorization: 'Bearer opaque',
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^resilient-watcher\/\d/) as string,
    },
    { 'content-type': 'text/plain', 'user-agent': 'mine' },
  ]);
  expect(requests[1]).not.toHaveProperty('content-length');
});

test.each([
  ['user:100%', 'user:100%'],
  ['user:%zz%4', 'user:%zz%4'],
  ['us%40er:p%3Aw', 'us@er:p:w'],
  ['caf%C3%A9:é', 'café:é'],
  ['user:%E0', Buffer.from('user:\u00e0', 'latin1')],
])(
  'the credentials %s of a URL are decoded, and a percent sign that escapes nothing stands',
  async (given, sent) => {
    const seen: (string | undefined)[] = [];
    const url = await serve((request, response) => {
      seen.push(request.headers.authorization);
      response.end();
    });
    const action = webhookAction({ url: url.replace('//', `//${given}@`) });
    await action.run({ paths: [], cause: 'fs' }, { signal: new AbortController().signal });
    expect(seen).toEqual([`Basic ${Buffer.from(sent as string).toString('base64')}`]);
  },
);

test('a token source that gives no token fails the call, which is not made without authorization', async () => {
  let requests = 0;
  const url = await serve((_, response) => {
    requests += 1;
    response.end();
  });
  for (const token of [undefined, '', { value: '' }]) {
    const action = webhookAction({ url, token: { get: () => Promise.resolve(token as string) } });
    const run = action.run({ paths: [], cause: 'fs' }, { signal: new AbortController().signal });
    await expect(run).rejects.toThrow('its token source gave no token');
  }
  expect(requests).toBe(0);
});

test('headers that are not strings are refused', () => {
  expect(() => webhookAction({ url: 'http://127.0.0.1/', headers: { 'x-key': 7 as never } })).toThrow(
    'option "headers" must be an object of strings',
  );
});
