// A NestJS module: configuration, TLS, /livez, /readyz and /metrics follow mounted files. See docs/frameworks.md.
import type { DynamicModule } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import client from 'prom-client';
import { healthHandler } from 'resilient-watcher';
import type { ConfigLoader } from 'resilient-watcher/config';
import { collectMetrics } from 'resilient-watcher/prometheus';
import { serveTls, type TlsFiles } from 'resilient-watcher/tls';

/** The loader, whose `current` is the configuration. */
export const CONFIG = Symbol('CONFIG');

/** @param options `files` of the certificate; without them, the server has no TLS */
export function mountedFiles(options: { loader: ConfigLoader<object>; files?: TlsFiles }): DynamicModule {
  const { loader, files } = options;
  const registry = new client.Registry();
  const metrics = collectMetrics({ client, registry });
  const health = healthHandler(...(files ? [loader, files] : [loader]));
  const lifecycle = ({ httpAdapter: server }: HttpAdapterHost): object => ({
    async onModuleInit() {
      if (files) await serveTls(server.getHttpServer() as Parameters<typeof serveTls>[0], files);
      for (const path of ['/livez', '/readyz']) server.get(path, health as () => unknown);
      server.get('/metrics', async (_: unknown, response: unknown) => {
        server.setHeader(response, 'content-type', registry.contentType);
        server.reply(response, await registry.metrics(), 200);
      });
    },
    async onApplicationShutdown() {
      metrics.close();
      await Promise.all([loader.close(), files?.close()]);
    },
  });
  const config = { provide: CONFIG, useFactory: () => loader.load().then(() => loader) };
  const server = { provide: Symbol('lifecycle'), useFactory: lifecycle, inject: [HttpAdapterHost] };
  const module = class MountedFiles {
    readonly loader = loader;
  };
  return { module, global: true, providers: [config, server], exports: [CONFIG] };
}
