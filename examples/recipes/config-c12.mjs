/**
 * c12 finds and merges the files (`extends`, `$production`, defaults); the loader decides when to read them and
 * whether to use the result. Each reload reads one revision of the mount, and the last good configuration stays if a
 * reload fails.
 *
 *   CONFIG_DIR   the mount of the ConfigMap, whose keys are app.yaml and the files that it extends; default /etc/app
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { loadConfig } from 'c12';
import { ConfigLoader, VolumeProvider } from 'resilient-watcher/config';
import { z } from 'zod';

const { CONFIG_DIR: directory = '/etc/app' } = process.env;

/** c12 as a provider. It reads a copy of the revision that the volume reported, so it never mixes two revisions. */
class C12Provider {
  name = `c12 in ${directory}`;
  #volume = new VolumeProvider(directory);

  async read() {
    const files = await this.#volume.readFiles();
    const cwd = await mkdtemp(join(tmpdir(), 'c12-'));
    try {
      for (const [key, bytes] of files) {
        await mkdir(dirname(join(cwd, key)), { recursive: true });
        await writeFile(join(cwd, key), bytes);
      }
      const { config } = await loadConfig({
        cwd,
        configFile: 'app',
        configFileRequired: true,
        rcFile: false,
        giget: false, // a ConfigMap must not make this program download anything
        defaults: { workers: 1 },
      });
      return config;
    } finally {
      await rm(cwd, { recursive: true });
    }
  }

  watch = (callback) => this.#volume.watch(callback);
  unwatch = () => this.#volume.unwatch();
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
loader.on('unreadable', ({ error }) => console.log('cannot be read:', error.message));
await loader.load();

function use({ server: { host, certificate, key }, workers }) {
  console.log(`using certificate ${certificate}, key ${key} of ${host}, ${workers} workers`);
}

process.once('SIGTERM', () => loader.close());
