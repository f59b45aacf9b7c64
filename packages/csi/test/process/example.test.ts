import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { credentials, loadPackageDefinition, status, type Client } from '@grpc/grpc-js';
import { load } from '@grpc/proto-loader';
import { mintTestToken } from 'resilient-watcher/testing';
import { expect, onTestFinished, test } from 'vitest';

import { run } from '../../../../test/support/command.js';
import { Program } from '../../../../test/support/program.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

const TOKENS = 'csi.storage.k8s.io/serviceAccount.tokens';

type Unary = (request: unknown, callback: (error: unknown, answer: unknown) => void) => void;
type NodeClient = Client & { readonly NodePublishVolume: Unary; readonly NodeUnpublishVolume: Unary };

/** A provider of secrets that tells a token by its `jti`. */
async function startProvider() {
  const provider = { secret: 'one', isDown: false, asked: [] as string[], url: '' };
  const server = createServer(({ headers: { authorization = '' }, url = '' }, response) => {
    const [, claims = ''] = authorization.split('.');
    const { jti } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { jti: string };
    provider.asked.push(`${url} ${jti}`);
    if (provider.isDown) response.writeHead(503).end();
    else response.end(JSON.stringify({ files: { password: provider.secret } }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  provider.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return provider;
}

/** A kubelet of one pod. */
async function kubeletScene(root = 'pods') {
  const provider = await startProvider();
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'pods'));
  // As where `--root-dir` of kubelet, or /var/lib/kubelet itself, is a link.
  symlinkSync('pods', join(directory, 'link'));
  const endpoint = `unix://${join(directory, 'csi.sock')}`;
  const target = join(directory, root, 'uid', 'mount');
  onTestFinished(async () => {
    await run('umount', ['-l', target]);
  });
  const proto = fileURLToPath(new URL('../../example/csi.proto', import.meta.url));
  const definition = loadPackageDefinition(await load(proto, { keepCase: true }));
  const { Node } = (definition['csi'] as unknown as { v1: { Node: new (...args: unknown[]) => NodeClient } })
    .v1;

  const scene = {
    provider,
    directory,
    target,
    /** The `jti` of the pod's token. */
    token: 't1',
    secrets: undefined as Record<string, string> | undefined,
    password: () => readFileSync(join(target, 'password'), 'utf8'),
    async startDriver(more: Record<string, string> = {}): Promise<Program> {
      const env = { CSI_ENDPOINT: endpoint, PROVIDER_URL: provider.url, ...more };
      const program = new Program('packages/csi/example/main.mjs', [], { env });
      await program.until(/listening/);
      return program;
    },
    async call(method: 'NodePublishVolume' | 'NodeUnpublishVolume', request: unknown): Promise<unknown> {
      const client = new Node(endpoint, credentials.createInsecure());
      try {
        return await new Promise((resolve) => {
          client[method](request, (error, answer) => resolve(error ?? answer));
        });
      } finally {
        client.close();
      }
    },
    publish: (change: Record<string, unknown> = {}) => {
      const jwt = mintTestToken({ jti: scene.token, exp: 4_000_000_000 });
      const text = JSON.stringify({ vault: { token: jwt, expirationTimestamp: '2096-10-02T07:06:40Z' } });
      return scene.call('NodePublishVolume', {
        volume_id: 'v1',
        target_path: target,
        secrets: { [TOKENS]: text },
        volume_context: { path: '/db' },
        ...change,
      });
    },
    unpublish: () => scene.call('NodeUnpublishVolume', { volume_id: 'v1', target_path: target }),
  };
  return scene;
}

test('a volume lives through republishing, rotation, a failing provider, and the death of its driver', async () => {
  const scene = await kubeletScene();
  const { provider } = scene;
  const first = await scene.startDriver();
  expect(await scene.publish()).toEqual({});
  expect(scene.password()).toBe('one');
  const { ino, dev } = statSync(scene.target);

  // As kubelet does about once a minute: nothing to do.
  expect(await scene.publish()).toEqual({});
  expect(provider.asked).toEqual(['/db t1']);

  scene.token = 't2';
  provider.secret = 'two';
  expect(await scene.publish()).toEqual({});
  expect(scene.password()).toBe('two');

  scene.token = 't3';
  provider.isDown = true;
  expect(await scene.publish()).toEqual({});
  expect(await scene.publish({ secrets: { [TOKENS]: '{' } })).toEqual({});
  expect(scene.password()).toBe('two');

  first.child.kill('SIGKILL');
  await first.exit;
  expect(scene.password()).toBe('two');
  const second = await scene.startDriver();
  expect(await scene.publish()).toEqual({});
  expect(scene.password()).toBe('two');
  provider.isDown = false;
  provider.secret = 'three';
  expect(await scene.publish()).toEqual({});
  expect(scene.password()).toBe('three');
  expect(statSync(scene.target)).toMatchObject({ ino, dev });

  expect(await scene.unpublish()).toEqual({});
  expect(existsSync(scene.target)).toBe(false);
  expect(await scene.unpublish()).toEqual({});
  expect(await second.terminated()).toBe(0);
  expect(first.output + second.output).not.toContain('eyJ');
});

test('a target below a link is mounted once, however often it is published, and unpublished', async () => {
  const scene = await kubeletScene('link');
  await scene.startDriver();
  expect(await scene.publish()).toEqual({});
  const path = realpathSync(scene.target);
  const mounts = (): number =>
    readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(` ${path} `)).length;
  const once = mounts();
  scene.token = 't2';
  expect(await scene.publish()).toEqual({});
  expect(mounts()).toBe(once);
  expect(await scene.unpublish()).toEqual({});
  expect([mounts(), existsSync(path)]).toEqual([0, false]);
});

test('an empty variable is the same as none', async () => {
  const scene = await kubeletScene();
  await scene.startDriver({ AUDIENCE: '', NODE_ID: '' });
  expect(await scene.publish()).toEqual({});
});

test('what cannot be published is answered with a code that says whose fault it is', async () => {
  const scene = await kubeletScene();
  await scene.startDriver();
  const isFile = join(scene.directory, 'file');
  writeFileSync(isFile, '');
  expect(await scene.publish({ secrets: {} })).toMatchObject({ code: status.FAILED_PRECONDITION });
  expect(await scene.publish({ secrets: { [TOKENS]: '{' } })).toMatchObject({
    code: status.FAILED_PRECONDITION,
  });
  scene.provider.isDown = true;
  expect(await scene.publish()).toMatchObject({ code: status.UNAVAILABLE });
  for (const path of ['relative', isFile]) {
    expect(await scene.publish({ target_path: path })).toMatchObject({ code: status.INVALID_ARGUMENT });
  }
  expect(existsSync('relative')).toBe(false);
  expect(await scene.unpublish()).toEqual({});
});
