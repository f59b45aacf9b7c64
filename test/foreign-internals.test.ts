/**
 * What the library uses of other packages and of Node.js although nobody promises it, because no public way exists. Each has one
 * file. If one of these tests fails, it has moved, and that file has to follow.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { Agent as HttpAgent } from 'node:http';
import { join, relative, sep } from 'node:path';
import { createServer, type TlsOptions } from 'node:tls';

import { describe, expect, test } from 'vitest';

import { packages, root } from '../packages/packages.mjs';
import { clientNodes } from './support/client-nodes.js';

type Members = Readonly<Record<string, unknown>>;

const kubeConfigs = clientNodes.map(
  ([major, { KubeConfig }]) => [major, new KubeConfig() as unknown as Members] as const,
);
const globals = globalThis as unknown as Readonly<Record<symbol, object | undefined>>;
/** Each with the name that its file, and no other one, has in its code. */
const INTERNALS: readonly (readonly [name: string, file: string])[] = [
  ['_createSecureConnector', 'packages/grpc/src/channel-credentials.ts'],
  ['_getConstructorOptions', 'packages/grpc/src/server-credentials.ts'],
  ['addRequest', 'src/kubernetes/connection-pool.ts'],
  ['createDispatcher', 'src/kubernetes/connection-pool.ts'],
  ['createAgent', 'src/kubernetes/connection-pool.ts'],
  ['agentCache', 'src/kubernetes/connection-pool.ts'],
  ['custom_authenticators', 'src/kubernetes/cluster-access.ts'],
  ['undici.globalDispatcher', 'src/tls/default-pools.ts'],
  ['syncBuiltinESMExports', 'src/tls/default-pools.ts'],
  ["listeners('connection')", 'src/tls/server-connections.ts'],
  ['requestCert', 'src/tls/serve-tls.ts'],
];

test.each(INTERNALS)('%s is used by one file', (name, file) => {
  const users = packages.flatMap(({ folder }) => {
    const src = join(root, folder, 'src');
    return readdirSync(src, { recursive: true, encoding: 'utf8' })
      .map((path) => join(src, path))
      .filter((path) => path.endsWith('.ts'))
      .filter((path) =>
        readFileSync(path, 'utf8')
          .replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
          .includes(name),
      );
  });
  expect(users.map((path) => relative(root, path).split(sep).join('/'))).toEqual([file]);
});

describe.each(kubeConfigs)('@kubernetes/client-node %s has still', (major, kubeConfig) => {
  test('methods of a KubeConfig that create its transports', () => {
    expect(kubeConfig['createAgent']).toBeTypeOf('function');
    if (major === '1') return;
    expect(kubeConfig['createDispatcher']).toBeTypeOf('function');
    expect(kubeConfig['agentCache']).toBeInstanceOf(Map);
  });

  test('a list of the authenticators that were added to a KubeConfig', () => {
    expect(kubeConfig['custom_authenticators']).toEqual([]);
  });
});

describe('Node.js has still', () => {
  test('a method of agents that sends a request', () => {
    expect((new HttpAgent() as unknown as Members)['addRequest']).toBeTypeOf('function');
  });

  test('one listener by which a TLS server begins a handshake, and which belongs to no server', () => {
    const [first, second] = [createServer(), createServer()].map((server) => server.listeners('connection'));
    expect(first).toHaveLength(1);
    expect(first).toEqual(second);
  });

  test('the options of a TLS server as its members', () => {
    const options: TlsOptions = { requestCert: true, ciphers: 'HIGH', minVersion: 'TLSv1.3', ca: [] };
    expect(createServer(options)).toMatchObject(options);
  });

  test('the dispatcher of fetch() in a global symbol, in a class named Agent', async () => {
    await fetch('data:,loads it');
    const dispatchers = [1, 2].map((version) => globals[Symbol.for(`undici.globalDispatcher.${version}`)]);
    expect(dispatchers.map((dispatcher) => dispatcher?.constructor.name)).toContain('Agent');
  });
});
