/** Events that say what does not work, in programs that do not listen to them. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, test } from 'vitest';

import { checkBuilt } from '../../support/built-package.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

const cwd = fileURLToPath(new URL('../../../', import.meta.url));

/** What a program writes to stderr. */
function stderrOf(program: string, directory = temporaryDirectory()): string {
  checkBuilt(cwd);
  const code = `
    import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    const directory = ${JSON.stringify(directory)};
    const until = async (condition) => { while (!condition()) await sleep(5); };
    ${program}`;
  const { stderr, status } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
    cwd,
    encoding: 'utf8',
    timeout: 60_000,
    env: { ...process.env, KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' },
  });
  expect([status, stderr]).toEqual([0, stderr]);
  return stderr;
}

const warningsIn = (stderr: string): number => stderr.match(/^\(node:\d+\)/gm)?.length ?? 0;

/** Watches a link to itself, which cannot be read, until the watcher has said so. */
const unreadable = (listening: string): string => `
  import { logTo, observe, ResilientWatcher } from 'resilient-watcher';
  const path = directory + '/app.yaml';
  symlinkSync('app.yaml', path);
  const watcher = new ResilientWatcher(path, { missingGraceMs: 10 });
  ${listening}
  const said = async (target) => {
    while (watcher.status().target !== target) { await watcher.check(); await sleep(5); }
  };
  await watcher.start();
  await said('unreadable');
  rmSync(path);
  writeFileSync(path, '');
  await said('file');
  rmSync(path);
  symlinkSync('app.yaml', path);
  await said('unreadable');
  await watcher.close();`;

test('the first unreadable that nobody hears is a process warning with its code, path and advice', () => {
  const directory = temporaryDirectory();
  const stderr = stderrOf(unreadable(''), directory);
  expect(stderr).toContain(
    '[ERR_TARGET_PATH] TargetError: ResilientWatcher "app.yaml": unreadable: Cannot read',
  );
  expect(stderr).toContain(join(directory, 'app.yaml'));
  expect(stderr).toContain('add a listener, or log all events with logTo(console)');
  expect(warningsIn(stderr)).toBe(1);
});

test.each([
  ['a listener', `watcher.on('unreadable', () => {});`],
  ['logTo', `const log = () => {}; logTo({ debug: log, info: log, warn: log, error: log });`],
  ['observe', `observe({ point() {} });`],
  [
    'a subscriber of the channel',
    `(await import('node:diagnostics_channel')).subscribe('resilient-watcher:unreadable', () => {});`,
  ],
])('unreadable is no process warning with %s', (_, listening) => {
  expect(stderrOf(unreadable(listening))).toBe('');
});

test.each([
  [
    'Prometheus',
    `const { default: client } = await import('prom-client');
    (await import('resilient-watcher/prometheus')).collectMetrics({ client, registry: client.register });`,
  ],
  ['an observer of operations', `observe({ settled() {} });`],
  ['for await', `(async () => { for await (const change of watcher); })();`],
  ['a listener of another event', `watcher.on('change', () => {});`],
])('unreadable is a process warning with only %s', (_, listening) => {
  expect(warningsIn(stderrOf(unreadable(listening)))).toBe(1);
});

/** The same file as a value; the watcher within it is heard by it. */
const value = (listening: string): string => `
  import { SecretFile } from 'resilient-watcher';
  symlinkSync('password', directory + '/password');
  const secret = new SecretFile(directory + '/password', { missingGraceMs: 10 });
  ${listening}
  await secret.start();
  await until(() => secret.status().rejected !== null);
  await secret.close();`;

test('an event that is passed on is one process warning, of the outermost component', () => {
  const stderr = stderrOf(value(''));
  expect(stderr).toContain('SecretFile "password": unreadable: ');
  expect(warningsIn(stderr)).toBe(1);
  expect(stderrOf(value(`secret.on('unreadable', () => {});`))).toBe('');
});

test('a configuration that is rejected, and a value that is rejected, are process warnings', () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'app.json'), '{"port": 80}');
  mkdirSync(join(directory, 'token'));
  const stderr = stderrOf(
    `
    import { ConfigLoader, FileProvider } from 'resilient-watcher/config';
    const loader = new ConfigLoader({ sources: [{ provider: new FileProvider(directory + '/app.json') }] });
    await loader.load();
    writeFileSync(directory + '/app.json', '{"port": 8');
    await until(() => loader.health().unready !== undefined);
    await loader.close();`,
    directory,
  );
  expect(stderr).toMatch(/^\(node:\d+\) \[ERR_CONFIG_\w+\] ConfigError: ConfigLoader "config": rejected: /);
  expect(stderr).toContain(`${join(directory, 'app.json')}:1:`);
  expect(warningsIn(stderr)).toBe(1);
});

const refresher = (listening: string): string => `
  import { logTo, TokenRefresher } from 'resilient-watcher';
  import { mintTestToken } from 'resilient-watcher/testing';
  let requests = 0;
  const client = {
    requestToken: async () => {
      if ((requests += 1) % 2) throw new Error('no route to host');
      return { token: mintTestToken(), expirationTimestamp: Date.now() + 3_600_000 };
    },
  };
  async function vault(token) { throw new Error('sealed, ' + token.value); }
  const refresher = new TokenRefresher({
    client, tokenFile: false, sinks: [vault], retryDelayMs: 1, minIntervalMs: 0, maxRetryDelayMs: 1,
  });
  ${listening}
  await refresher.start();
  await until(() => refresher.current);
  await refresher.idle();
  await refresher.refresh().catch(() => {});
  await refresher.close();`;

test('a retry and an undelivered token are process warnings, one for each event, without the token', () => {
  const stderr = stderrOf(refresher(''));
  expect(stderr).toContain('TokenRefresher "TokenRefresher": retry: ');
  expect(stderr).toContain('TokenRefresher "TokenRefresher": undelivered: ');
  expect(stderr).toContain('vault');
  expect(stderr).not.toMatch(/eyJ/);
  expect(warningsIn(stderr)).toBe(2);
});

test('a logger hears of retries and of deliveries that failed', () => {
  const lines = `
    const log = (fields, text) => process.stderr.write(text + '\\n');
    logTo({ debug: log, info: log, warn: log, error: log });`;
  const stderr = stderrOf(refresher(lines));
  expect(warningsIn(stderr)).toBe(0);
  expect(stderr).toMatch(/^TokenRefresher "TokenRefresher": .*no route to host; next attempt in \d+ ms$/m);
  expect(stderr).toMatch(/^TokenRefresher "TokenRefresher": token delivery failed: /m);
});

test('an action that fails is a process warning', () => {
  const stderr = stderrOf(`
    import { ReloadAction } from '@resilient-watcher/cli/action';
    const run = async () => { throw new Error('exit code 1'); };
    const reload = new ReloadAction({ action: { name: 'nginx', run } });
    reload.trigger({ paths: [], cause: 'check' });
    await until(() => reload.status().lastSuccessful === false);
    await reload.close();`);
  expect(stderr).toContain('[ERR_ACTION_FAILED] ActionError: ReloadAction "nginx": failed: ');
  expect(warningsIn(stderr)).toBe(1);
});

/** A refresher that cannot work: its `error` is of the library. */
const failing = (listening: string): string => `
  import { logTo, observe, TokenError, TokenRefresher } from 'resilient-watcher';
  const requestToken = async () => { throw new TokenError('ERR_TOKEN_CLIENT', 'the package is missing'); };
  const refresher = new TokenRefresher({ client: { requestToken }, tokenFile: false });
  ${listening}
  await refresher.start().catch(() => {});
  await refresher.close();`;

const logging = `
  const log = (fields, text) => process.stdout.write(text);
  logTo({ debug: log, info: log, warn: log, error: log });`;

test('an error that nobody hears is a process warning', () => {
  const stderr = stderrOf(failing(''));
  expect(stderr).toContain('[ERR_TOKEN_CLIENT] TokenError: the package is missing');
  expect(warningsIn(stderr)).toBe(1);
  expect(warningsIn(stderrOf(failing('observe({ settled() {} });')))).toBe(1);
});

test.each([
  ['a listener', `refresher.on('error', () => {});`],
  ['logTo', logging],
  ['observe', 'observe({ point() {} });'],
])('an error is no process warning with %s', (_, listening) => {
  expect(stderrOf(failing(listening))).toBe('');
});

/** A listener that fails: what it threw is shown by no log. */
const throwing = (listening: string): string => `
  import { logTo, ResilientWatcher } from 'resilient-watcher';
  writeFileSync(directory + '/app.yaml', '');
  const watcher = new ResilientWatcher(directory + '/app.yaml');
  watcher.on('change', function onConfig() { throw new Error('no such field'); });
  ${listening}
  await watcher.start();
  await watcher.close();`;

test('what a listener throws is a process warning even with a log, which shows neither it nor its place', () => {
  const stderr = stderrOf(throwing(logging));
  expect(stderr).toMatch(/ListenerError: A listener of "change" failed: no such field[\s\S]*at \S*onConfig /);
  expect(warningsIn(stderr)).toBe(1);
  expect(stderrOf(throwing(`${logging} watcher.on('error', () => {});`))).toBe('');
});
