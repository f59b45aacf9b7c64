import { commandAction } from '../../src/action.js';
import { expect, onTestFinished, test } from 'vitest';

test('a command that ends without reading its long stdin has succeeded, and ends nothing else', async () => {
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  const others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException').on('uncaughtException', note);
  onTestFinished(() => {
    process.removeAllListeners('uncaughtException');
    for (const listener of others) process.on('uncaughtException', listener);
  });
  const added = Array.from({ length: 20_000 }, (_, index) => `key-${index}`);
  const paths = [{ path: '/etc/app', added, changed: [], removed: [], revision: null }];
  const { signal } = new AbortController();
  const action = commandAction({ command: 'sh', args: ['-c', 'exec <&-; exit 0'], output: 'ignore' });
  for (let run = 0; run < 5; run += 1) await action.run({ paths, cause: 'fs' }, { signal });
  // EPIPE may come after the end of the command.
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(uncaught).toEqual([]);
});

test.each([
  [{ command: '/usr/sbin/nginx', args: ['-g', 'secret'] }, '/usr/sbin/nginx'],
  [{ command: 'curl -u app:secret https://a', shell: true }, 'curl'],
  [{ command: '  ./reload.sh', shell: true }, './reload.sh'],
  [{ command: 'PASSWORD="a secret" reload', shell: true }, 'sh'],
  [{ command: 'echo; reload --password=secret', shell: true }, 'sh'],
  [{ command: '"my secret" x', shell: true }, 'sh'],
])('the name of %j is that of its program', (options, name) => {
  expect(commandAction(options).name).toBe(name);
});
