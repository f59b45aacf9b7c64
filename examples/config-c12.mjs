/**
 * c12 finds and merges the files (`extends`, `$production`, defaults), the loader decides when and whether: each
 * reload is read from one revision of the mount, and one that fails leaves the last good configuration in place.
 *
 *   CONFIG_DIR   where the ConfigMap is mounted; its keys are app.yaml and what that extends; default /etc/app
 */
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';

import { loadConfig } from 'c12';
import { ConfigLoader, VolumeProvider } from 'resilient-watcher/config';
import { z } from 'zod';

const { CONFIG_DIR: directory = '/etc/app' } = process.env;

/** c12 as a provider: it reads, and the volume tells when. */
class C12Provider {
  name = `c12 in ${directory}`;
  #volume = new VolumeProvider(directory);
  #data = join(directory, '..data');

  async read() {
    for (;;) {
      const revision = await realpath(this.#data);
      const result = await this.#readRevision(revision).catch((error) => error);
      // c12 takes a file that is gone for one that never was: what was read during a swap is read again.
      if (revision !== (await realpath(this.#data))) continue;
      if (result instanceof Error) throw result;
      return result;
    }
  }

  watch = (callback) => this.#volume.watch(callback);
  unwatch = () => this.#volume.unwatch();

  async #readRevision(cwd) {
    const { config } = await loadConfig({
      cwd,
      configFile: 'app',
      configFileRequired: true,
      rcFile: false,
      giget: false, // no ConfigMap makes this program download anything
      defaults: { workers: 1 },
    });
    return config;
  }
}

const loader = new ConfigLoader({
  sources: [{ provider: new C12Provider() }],
  validate: z.object({
    server: z.object({ host: z.string(), certificate: z.number(), key: z.number() }),
    workers: z.number(),
  }),
});
loader.on('change', ({ current }) => use(current));
loader.on('rejected', ({ problems }) => console.log('rejected:', problems));
loader.on('error', (error) => console.log('cannot be watched:', error.message));
use(await loader.load());

function use({ server: { host, certificate, key }, workers }) {
  console.log(`using certificate ${certificate}, key ${key} of ${host}, ${workers} workers`);
}

process.once('SIGTERM', () => loader.close());
