/** `PodSync` and an API server that is broken or lies: few requests, little memory, and no lasting harm. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';

import { KubeConfig } from '@kubernetes/client-node';
import { clusterClient } from 'resilient-watcher/kubernetes';
import { PodSync } from '@resilient-watcher/sync-pods';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, onTestFinished, test, vi } from 'vitest';

import { firstServerCertificates } from '../../local-api-server/src/local-api-server/server-certificates.js';
import { podOf } from './support/pod-sync-scene.js';
import { some } from '../../../test/support/rounds.js';

type Handler = (query: URLSearchParams, response: ServerResponse) => void;

const isWatch = (query: URLSearchParams): boolean => query.has('watch');
const pod = podOf('p', [{ configMap: { name: 'app' } }]);

/** What a good server answers: one ConfigMap, in this version, and one pod that mounts it; its watches say nothing. */
function honest(path: string, query: URLSearchParams, response: ServerResponse, version: string): void {
  if (isWatch(query)) {
    response.flushHeaders();
    return;
  }
  const names = { namespace: 'shop', resourceVersion: version };
  const item = path.endsWith('/pods')
    ? { ...pod, metadata: { ...names, name: 'p', uid: 'u' } }
    : { metadata: { ...names, name: 'app', uid: 'c' } };
  response.end(JSON.stringify({ metadata: { resourceVersion: version }, items: [item] }));
}

/** Watches are as a good server has them. */
const onList =
  (answer: (response: ServerResponse, query: URLSearchParams) => void): Handler =>
  (query, response) => {
    if (isWatch(query)) honest('', query, response, '1');
    else answer(response, query);
  };

/** Lists are as a good server has them. */
const onWatch =
  (path: string, text: string, isEnd = true): Handler =>
  (query, response) => {
    if (!isWatch(query)) honest(path, query, response, '1');
    else if (isEnd) response.end(text);
    else response.write(text);
  };

const OBJECTS = '/api/v1/namespaces/shop/configmaps';
const event = (type: string, object: object): string => `${JSON.stringify({ type, object })}\n`;
const metadata = { namespace: 'shop', name: 'app', uid: 'c', resourceVersion: '7' };

const HOSTILE: readonly [string, Handler][] = [
  ['never answers a list', onList(() => undefined)],
  ['answers with a page of a proxy', onList((response) => response.end('<html>'))],
  ['answers with something that is not a list', onList((response) => response.end('{"items":7}'))],
  ['redirects', onList((response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end())],
  [
    'has a list without an end',
    onList((response) => response.end('{"metadata":{"resourceVersion":"1","continue":"x"},"items":[]}')),
  ],
  ['has a list of any length', onList((response) => response.end(Buffer.alloc(5 * 2 ** 20, ' ')))],
  [
    'lists nonsense',
    onList((response) =>
      response.end('{"metadata":{"resourceVersion":"1"},"items":[null,7,[],{"metadata":{"name":{}}}]}'),
    ),
  ],
  ['ends each watch at once', onWatch(OBJECTS, '')],
  ['says nothing in a watch', onWatch(OBJECTS, '', false)],
  ['sends half a line', onWatch(OBJECTS, '{"type":"MODIF', false)],
  ['ends within a line', onWatch(OBJECTS, '{"type":"MODIF')],
  ['sends what is not JSON', onWatch(OBJECTS, '\u0000\n\n<html>\n')],
  ['sends events that are none', onWatch(OBJECTS, '[]\n{"type":"MODIFIED","object":7}\n')],
  ['sends a line of any length', onWatch(OBJECTS, 'x'.repeat(5 * 2 ** 20), false)],
  ['is 410 Gone again and again', onWatch(OBJECTS, event('ERROR', { code: 410, message: 'too old' }))],
  ['changes an object without end', onWatch(OBJECTS, event('MODIFIED', { metadata }))],
];

test.each(some(HOSTILE, 2))(
  'a server that %s is asked seldom, and an update arrives once it is well',
  async (what, hostile) => {
    let answer: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
    let requests = 0;
    let pending = 0;
    let held = 0;
    const patched: string[] = [];
    const { ca, certificate: cert, key } = firstServerCertificates();
    const server = createServer({ cert, key }, (request, response) => {
      requests += 1;
      if (request.url?.includes('limit')) {
        held += 1;
        response.once('close', () => (held -= 1));
      }
      answer?.(request, response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    const respond = (version: string, wrong?: Handler): void => {
      answer = ({ method, url = '' }, response) => {
        const [path = '', query] = url.split('?');
        if (method === 'PATCH') {
          patched.push(path);
          response.end('{}');
        } else if (wrong && path === OBJECTS) wrong(new URLSearchParams(query), response);
        else honest(path, new URLSearchParams(query), response, version);
      };
    };

    const clock = new FakeClock();
    const kubeConfig = new KubeConfig();
    const { port } = server.address() as AddressInfo;
    kubeConfig.loadFromClusterAndUser(
      { name: 'c', server: `https://127.0.0.1:${port}`, caData: btoa(ca), skipTLSVerify: false },
      { name: 'u', token: 'opaque' },
    );
    const client = clusterClient({ kubeConfig, clock });
    await using sync = new PodSync({
      client: {
        request: (request) => {
          pending += 1;
          return client.request(request).finally(() => (pending -= 1));
        },
        lines: (request) => client.lines(request),
      },
      clock,
      namespaces: ['shop'],
      resyncIntervalMs: 60_000,
    });
    respond('1', hostile);
    const started = sync.start();
    const settle = async (ms: number): Promise<void> => {
      for (let past = 0; past < ms; past += 1_000) {
        // The clock stops while a request is on its way.
        await vi.waitFor(() => expect(pending).toBeLessThanOrEqual(held), { interval: 1, timeout: 40_000 });
        await clock.advance(1_000);
      }
    };
    // The delay grows to 30 s. Of a list without an end, 400 pages are read each time, so three attempts are enough.
    const isEndless = what.includes('without an end');
    await settle(isEndless ? 3_000 : 30_000);
    expect(requests).toBeLessThan(isEndless ? 3_000 : 40);

    respond('1');
    await vi.waitFor(
      async () => {
        await settle(10_000);
        expect(sync.status()).toMatchObject({ listed: true, pods: 1 });
      },
      { timeout: 60_000, interval: 1 },
    );
    await started;
    const before = patched.length;
    respond('2');
    await vi.waitFor(
      async () => {
        await settle(10_000);
        expect(patched.length).toBeGreaterThan(before);
      },
      { timeout: 60_000, interval: 1 },
    );
    expect(new Set(patched)).toEqual(new Set(['/api/v1/namespaces/shop/pods/p']));
  },
  60_000,
);

test('a list that is lost between two pages is made again, and no watch begins after a part of it', async () => {
  const clock = new FakeClock();
  const expired = event('ERROR', { code: 410, message: 'too old' });
  const patched: string[] = [];
  let lists = 0;
  const sync = new PodSync({
    clock,
    random: () => 0,
    namespaces: ['shop'],
    client: {
      request({ method, path }) {
        if (method === 'PATCH') {
          patched.push(path);
          return Promise.resolve({});
        }
        const isPods = path.includes('/pods?');
        if (!isPods) lists += 1;
        // The second list has two pages, and the connection is lost before the second one.
        if (path.includes('continue=more')) return Promise.reject(new Error('socket hang up'));
        const next = !isPods && lists === 2 && { continue: 'more' };
        const item = isPods
          ? { ...pod, metadata: { ...metadata, name: 'p', uid: 'u' } }
          : { metadata: { ...metadata, resourceVersion: lists === 1 ? '1' : '5' } };
        const items = next ? [] : [item];
        return Promise.resolve({ metadata: { resourceVersion: `${lists}`, ...next }, items });
      },
      lines: ({ path, signal }) =>
        path.includes('/configmaps?') && lists === 1
          ? Readable.from([expired])
          : new Readable({ objectMode: true, read: () => undefined, signal }),
    },
  });
  onTestFinished(() => sync.close());
  await sync.start();
  const patchedLater = async (): Promise<unknown> => {
    await clock.advance(1_000);
    return patched;
  };
  await expect.poll(patchedLater).toHaveLength(1);
});
