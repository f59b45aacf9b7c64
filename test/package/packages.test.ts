/** The packed tarballs of the packages beside the one of the library, each installed as a user installs it. Needs the npm registry. */
import { beforeAll, describe, expect, inject, test } from 'vitest';

import { Application } from './application.js';

describe('@resilient-watcher/cli', () => {
  const application = new Application();
  beforeAll(() =>
    application.install([inject('tarballs')['@resilient-watcher/cli'] ?? ''], '--omit=optional'),
  );

  test('doctor examines JSON and YAML', async () => {
    const program = 'node_modules/.bin/resilient-watcher';
    application.write('m.json', '{"kind":"ConfigMap","metadata":{"name":"m"},"data":{}}');
    application.write('m.yaml', 'kind: ConfigMap\n');
    for (const file of ['m.json', 'm.yaml']) {
      const { stdout } = await application.run(program, 'doctor', '--manifest', file);
      expect(stdout).toContain('nothing found');
    }
  });
});
