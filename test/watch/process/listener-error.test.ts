import { spawnSync } from 'node:child_process';

import { expect, test } from 'vitest';

import { temporaryDirectory } from '../../support/temporary-directory.js';

test('a listener that fails is printed with its place in the application', () => {
  const directory = temporaryDirectory();
  const program = `
    import { ResilientWatcher } from 'resilient-watcher';
    const watcher = new ResilientWatcher(${JSON.stringify(directory)}, { persistent: false });
    watcher.on('change', function onConfig() {
      throw new TypeError('no such field');
    });
    await watcher.start();`;
  const { stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  });
  expect(stderr).toMatch(
    /ListenerError: A listener of "change" failed: no such field[\s\S]*at \S*onConfig \(/,
  );
});
