/** The recipes for Fastify and NestJS: configuration, TLS, health and metrics of one server follow the files. */
import 'reflect-metadata';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import { Controller, Get, Inject, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import fastify from 'fastify';
import { ConfigLoader, FileProvider } from 'resilient-watcher/config';
import { KubeletVolume } from 'resilient-watcher/testing';
import { TlsFiles } from 'resilient-watcher/tls';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';

import { mountedFiles } from '../fastify.js';
import { CONFIG, mountedFiles as mountedFilesModule } from '../nest.js';
import { createAuthority, createServerPair } from '../../../test/support/certificates.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { askHttps, type Sight } from '../../../test/support/tls-clients.js';

const schema = z.object({ greeting: z.string() });
type Config = z.infer<typeof schema>;

interface Mounts {
  readonly loader: ConfigLoader<Config>;
  readonly files: TlsFiles;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

const frameworks: Readonly<
  Record<string, (mounts: Mounts) => Promise<{ port: number; close: () => unknown }>>
> = {
  async Fastify(mounts) {
    const app = fastify({ https: {} });
    await app.register(mountedFiles as never, mounts as never);
    app.get('/', () => (app as unknown as { config: Config }).config.greeting);
    await app.listen({ port: 0, host: '127.0.0.1' });
    return { port: portOf(app.server), close: () => app.close() };
  },
  async NestJS(mounts) {
    class Greeter {
      readonly #config: ConfigLoader<Config>;
      constructor(config: ConfigLoader<Config>) {
        this.#config = config;
      }
      greet(): string | undefined {
        return this.#config.current?.greeting;
      }
    }
    class AppModule {
      readonly mounts = mounts;
    }
    // What the decorators do.
    Inject(CONFIG)(Greeter, undefined, 0);
    Get()(Greeter.prototype, 'greet', Object.getOwnPropertyDescriptor(Greeter.prototype, 'greet') ?? {});
    Controller()(Greeter);
    Module({ imports: [mountedFilesModule(mounts)], controllers: [Greeter] })(AppModule);
    const app = await NestFactory.create(AppModule, new FastifyAdapter({ https: {} } as never), {
      logger: false,
      abortOnError: false,
    });
    await app.listen(0, '127.0.0.1');
    return { port: portOf(app.getHttpServer() as Server), close: () => app.close() };
  },
};

test.each(Object.keys(frameworks))('%s', async (name) => {
  const authority = createAuthority('CA');
  const config = new KubeletVolume(join(temporaryDirectory(), 'config'));
  const tls = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  const publishPair = (): void => {
    const { cert, key } = createServerPair(authority);
    tls.publish({ 'tls.crt': cert, 'tls.key': key });
  };
  config.publish({ 'app.yaml': 'greeting: hello' });
  publishPair();
  const sources = [{ provider: new FileProvider(config.path('app.yaml')) }];
  const mounts = {
    loader: new ConfigLoader({ sources, validate: schema }),
    files: new TlsFiles(tls.directory),
  };
  const app = await frameworks[name]?.(mounts);
  if (!app) throw new Error(`no framework ${name}`);
  let isClosed = false;
  onTestFinished(async () => {
    if (!isClosed) await app.close();
  });
  const ask = (path: string): Promise<Sight> => askHttps({ port: app.port, ca: authority.cert, path });

  const first = await ask('/');
  expect(first.text).toBe('hello');
  config.publish({ 'app.yaml': 'greeting: goodbye' });
  publishPair();
  await expect.poll(async () => (await ask('/')).text).toBe('goodbye');
  await expect.poll(async () => (await ask('/')).fingerprint).not.toBe(first.fingerprint);
  expect(JSON.parse((await ask('/readyz')).text)).toMatchObject({ ready: true });
  expect(JSON.parse((await ask('/livez')).text)).toMatchObject({ live: true });
  expect((await ask('/metrics')).text).toContain('resilient_watcher_');

  isClosed = true;
  await app.close();
  expect([mounts.loader.status().state, mounts.files.status().state]).toEqual(['closed', 'closed']);
});
