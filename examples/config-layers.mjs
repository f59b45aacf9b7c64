/**
 * The layers of a usual program: defaults, app.yaml and app.$NODE_ENV.yaml of a ConfigMap, environment, arguments.
 *
 *   node config-layers.mjs --help                     the keys, with types and defaults
 *   node config-layers.mjs --port 9000 --log.level=debug
 *
 *   CONFIG_DIR         the mount of the ConfigMap; default /etc/app
 *   NODE_ENV           production adds app.production.yaml
 *   APP_LOG__LEVEL …   override keys of the files
 */
import { join } from 'node:path';

import { ConfigLoader, nodeEnvFiles } from 'resilient-watcher/config';
import { z } from 'zod';

const { CONFIG_DIR: directory = '/etc/app' } = process.env;

const loader = new ConfigLoader({
  sources: [
    ...nodeEnvFiles(join(directory, 'app.yaml'), { optional: true }),
    { env: { prefix: 'APP_' } },
    {
      args: {
        options: {
          port: { type: 'string', short: 'p' },
          'log.level': { type: 'string' },
          help: { type: 'boolean', short: 'h' },
        },
      },
    },
  ],
  validate: z.object({
    port: z.coerce.number().int().default(8080).describe('Where it listens'),
    log: z.object({ level: z.enum(['debug', 'info', 'warn']).default('info') }).prefault({}),
    db: z.object({ password: z.string().default('') }).prefault({}),
  }),
});

if (process.argv.includes('--help') || process.argv.includes('-h')) {
  console.log(loader.describe('text'));
} else {
  await loader.load();
  console.log(loader.describe('text'));
  loader.on('change', ({ paths }) => {
    console.log('changed', paths.map((path) => path.join('.')).join(' '));
    console.log(loader.describe('text'));
  });
  process.once('SIGTERM', () => loader.close());
}
