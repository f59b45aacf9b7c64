// A Fastify plugin: `app.config`, TLS, /livez, /readyz and /metrics follow mounted files. See docs/frameworks.md.
import type { FastifyPluginAsync } from 'fastify';
import client from 'prom-client';
import { healthHandler } from 'resilient-watcher';
import type { ConfigLoader } from 'resilient-watcher/config';
import { collectMetrics } from 'resilient-watcher/prometheus';
import { serveTls, type TlsFiles } from 'resilient-watcher/tls';
import type { Server } from 'node:tls';

declare module 'fastify' {
  interface FastifyInstance {
    readonly config: unknown;
  }
}

interface Options {
  readonly loader: ConfigLoader<object>;
  readonly files?: TlsFiles; // without it, the server has no TLS
}

const plugin: FastifyPluginAsync<Options> = async (app, { loader, files }) => {
  await loader.load();
  app.decorate('config', { getter: () => loader.current });
  if (files) await serveTls(app.server as unknown as Server, files);
  const health = healthHandler(...(files ? [loader, files] : [loader]));
  app.get('/livez', health).get('/readyz', health);
  const registry = new client.Registry();
  const metrics = collectMetrics({ client, registry });
  app.get('/metrics', async (_, reply) => {
    reply.type(registry.contentType);
    return registry.metrics();
  });
  app.addHook('onClose', async () => {
    metrics.close();
    await Promise.all([loader.close(), files?.close()]);
  });
};

/** Its decorations and hooks are those of the server that registers it. */
export const mountedFiles = Object.assign(plugin, { [Symbol.for('skip-override')]: true });
