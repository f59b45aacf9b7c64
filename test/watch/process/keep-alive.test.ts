/** What only hands out a value keeps no process alive; what works by itself does. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { mintTestToken } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { checkBuilt } from '../../support/built-package.js';
import { createAuthority, createServerPair } from '../../support/certificates.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

const cwd = fileURLToPath(new URL('../../../', import.meta.url));
const { cert, key } = createServerPair(createAuthority('job'));

/** Exit code 7: it goes on. */
function exitCodeOf(program: string): number | null {
  checkBuilt(cwd);
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'token'), mintTestToken());
  writeFileSync(join(directory, 'app.json'), '{}');
  writeFileSync(join(directory, 'tls.crt'), cert);
  writeFileSync(join(directory, 'tls.key'), key);
  const code = `
    import { credentials, fileSink, ResilientWatcher, SecretFile, TokenFile, TokenRefresher } from 'resilient-watcher';
    import { ConfigLoader, FileProvider } from 'resilient-watcher/config';
    import { TlsFiles } from 'resilient-watcher/tls';
    import { FakeTokenClient } from 'resilient-watcher/testing';
    const directory = ${JSON.stringify(directory)};
    const token = directory + '/token';
    const client = new FakeTokenClient();
    ${program}
    setTimeout(() => process.exit(7), 200).unref();`;
  const { stderr, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
    cwd,
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect(stderr).toBe('');
  return status;
}

test.each([
  ['TokenFile', 'await new TokenFile(token).get();'],
  ['SecretFile', 'await new SecretFile(token).get();'],
  [
    'credentials()',
    `await credentials(directory, { keys: { username: 'token', password: 'token' } }).get();`,
  ],
  ['TlsFiles', `await new TlsFiles({ cert: directory + '/tls.crt', key: directory + '/tls.key' }).get();`],
  [
    'a TokenRefresher without sinks',
    'const it = new TokenRefresher({ client, tokenFile: token }); await it.start(); await it.refresh();',
  ],
  [
    'a SecretFile beside a watcher of its directory that is closed',
    `const watcher = new ResilientWatcher(token);
    await watcher.start();
    await new SecretFile(token).get();
    await watcher.close();`,
  ],
])('a Job that uses %s ends when its work is done', (_, program) => {
  expect(exitCodeOf(program)).toBe(0);
});

test.each([
  ['a watcher', 'await new ResilientWatcher(token).start();'],
  [
    'a watcher that polls as often as a SecretFile does',
    `await new SecretFile(token, { backend: 'poll' }).get();
    await new ResilientWatcher(token, { backend: 'poll' }).start();`,
  ],
  [
    'a ConfigLoader',
    `await new ConfigLoader({ sources: [{ provider: new FileProvider(directory + '/app.json') }] }).start();`,
  ],
  [
    'a TokenRefresher with sinks',
    `await new TokenRefresher({ client, tokenFile: false, sinks: [fileSink(directory + '/out')] }).start();`,
  ],
  ['a TokenFile that is `persistent`', 'await new TokenFile(token, { persistent: true }).get();'],
])('%s goes on', (_, program) => {
  expect(exitCodeOf(program)).toBe(7);
});
