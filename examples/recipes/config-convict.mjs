/**
 * convict keeps its schema (formats, defaults, environment, sensitive values); the loader provides the values: each update is
 * loaded into a new convict configuration, and takes effect only when the `validate` of convict accepts it.
 *
 *   CONFIG_DIR   the mount of the ConfigMap, whose key is app.json; default /etc/app
 *   PORT, DB_PASSWORD   see the schema
 */
import { join } from 'node:path';

import convict from 'convict';
import { ConfigError, ConfigLoader, FileProvider } from 'resilient-watcher/config';

const { CONFIG_DIR: directory = '/etc/app' } = process.env;

const schema = {
  env: { doc: 'The environment', format: ['production', 'test'], default: 'test' },
  port: { doc: 'Where it listens', format: 'port', default: 8080, env: 'PORT' },
  db: {
    host: { doc: 'Name of the database server', format: String, default: 'localhost' },
    password: { doc: 'Its password', format: String, default: '', env: 'DB_PASSWORD', sensitive: true },
  },
};

const namesIn = (values) =>
  Object.entries(values).flatMap(([key, value]) =>
    typeof value === 'object' && value !== null ? namesIn(value).map((name) => `${key}.${name}`) : [key],
  );

const loader = new ConfigLoader({
  sources: [{ provider: new FileProvider(join(directory, 'app.json')) }],
  validate(values) {
    const config = convict(schema);
    // The messages of convict quote values, so only the names of unknown keys are passed on.
    const unknown = namesIn(values).filter((name) => !config.has(name));
    if (unknown.length > 0) throw new ConfigError('ERR_CONFIG_SCHEMA', `unknown: ${unknown.join(', ')}`);
    config.load(values);
    config.validate({ allowed: 'strict' });
    return config.getProperties();
  },
});

const { port, db } = await loader.load();
console.log(`started on port ${port} with ${db.host}`);

loader.select(
  (config) => config.db.host,
  (host) => console.log('connecting to', host),
);
loader.on('change', ({ paths }) => console.log('changed', paths.map((path) => path.join('.')).join(' ')));
loader.on('rejected', ({ problems }) => {
  for (const { message } of problems) console.log('rejected', message);
});
loader.on('unreadable', ({ error }) => console.log('cannot be read:', error.message));

process.once('SIGTERM', () => loader.close());
