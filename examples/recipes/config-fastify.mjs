/**
 * A Fastify server whose log level and rate limit follow a mounted ConfigMap, without a restart or a dropped connection.
 *
 *   CONFIG_DIR   the mount of the ConfigMap, whose key is app.yaml; default /etc/app
 *   PORT         default 8080
 *   APP_…        any value of the file: APP_LOG__LEVEL=debug overrides its log.level
 */
import { join } from 'node:path';

import rateLimit from '@fastify/rate-limit';
import fastify from 'fastify';
import { ConfigLoader, FileProvider } from 'resilient-watcher/config';
import { z } from 'zod';

const { CONFIG_DIR: directory = '/etc/app', PORT: port = '8080' } = process.env;

const loader = new ConfigLoader({
  sources: [
    { name: 'defaults', values: { log: { level: 'info' }, rate_limit: { max: 100, window_ms: 60_000 } } },
    { provider: new FileProvider(join(directory, 'app.yaml')) },
    { env: { prefix: 'APP_' } },
  ],
  validate: z.strictObject({
    log: z.strictObject({ level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']) }),
    // The environment has only strings.
    rate_limit: z.strictObject({ max: z.coerce.number().int().min(1), window_ms: z.coerce.number().min(1) }),
  }),
});
const config = await loader.load();

const app = fastify({ logger: { level: config.log.level } });
await app.register(rateLimit, {
  max: () => loader.current.rate_limit.max,
  timeWindow: () => loader.current.rate_limit.window_ms,
});
app.get('/', ({ log }) => {
  log.debug('somebody asked');
  return { hello: 'world' };
});
app.get('/healthz', { config: { rateLimit: false } }, () => loader.status());

loader.select(
  ({ log }) => log.level,
  (level) => {
    // Requests get child loggers, which take their level from this one when they are created.
    app.log.level = level;
  },
);
loader.on('change', ({ paths }) => app.log.warn({ paths }, 'configuration changed'));
loader.on('rejected', ({ problems }) =>
  app.log.error({ problems }, 'configuration rejected, the last good one is kept'),
);
loader.on('unreadable', ({ error }) => app.log.error(error, 'configuration cannot be read'));

for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, async () => {
    await loader.close();
    await app.close();
  });
}
await app.listen({ port: Number(port), host: '127.0.0.1' });
