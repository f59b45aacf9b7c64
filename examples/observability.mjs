/**
 * A Fastify server with metrics and probes for the files that it watches.
 *
 *   GET /metrics   for Prometheus
 *   GET /livez     503 if a watched path is no longer checked
 *   GET /readyz    503 until everything has been read, and while the configuration is rejected
 *
 *   CONFIG_DIR   the mount of a ConfigMap with app.yaml and policy.yaml; default /etc/app
 *   PORT         default 8080
 */
import { join } from 'node:path';

import fastify from 'fastify';
import client from 'prom-client';
import { healthHandler, logTo, ResilientWatcher } from 'resilient-watcher';
import { ConfigLoader, FileProvider } from 'resilient-watcher/config';
import { collectMetrics } from 'resilient-watcher/prometheus';

const { CONFIG_DIR: directory = '/etc/app', PORT: port = '8080' } = process.env;

const app = fastify({ logger: { level: 'info' } });
// Subscribe before anything is started, so that no event is missed.
const subscriptions = [collectMetrics({ client, registry: client.register }), logTo(app.log)];

const policy = new ResilientWatcher(join(directory, 'policy.yaml'));
const config = new ConfigLoader({
  name: 'app',
  sources: [{ provider: new FileProvider(join(directory, 'app.yaml')) }],
});
await Promise.all([policy.start(), config.start()]);

app.get('/metrics', async (_request, reply) => {
  reply.type(client.register.contentType);
  return client.register.metrics();
});
app.get('/livez', healthHandler(policy, config));
app.get('/readyz', healthHandler(policy, config));

for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, async () => {
    await app.close();
    await Promise.all([policy.close(), config.close()]);
    for (const subscription of subscriptions) subscription.close();
  });
}
await app.listen({ port: Number(port), host: '127.0.0.1' });
