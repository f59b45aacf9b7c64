import { ConfigLoader, type ConfigError } from 'resilient-watcher/config';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, onTestFinished, test, vi } from 'vitest';
import { dirname, join, relative } from 'node:path';
import fs, { mkdirSync, writeFileSync } from 'node:fs';

import { temporaryDirectory } from '../support/temporary-directory.js';
import { needs } from '../support/other-systems.js';

const SECRET = 'hunter2-hunter2';

function loaderOf(env: Record<string, string>, files: boolean | readonly string[] = true): ConfigLoader {
  const loader = new ConfigLoader({
    sources: [{ values: { db: { password: '', user: 'app' } } }, { env: { prefix: 'APP_', env, files } }],
  });
  onTestFinished(() => loader.close());
  return loader;
}

function secretFile(text: string): string {
  const path = join(temporaryDirectory(), 'password');
  writeFileSync(path, text);
  return path;
}

test('a variable with the suffix _FILE sets the key to the text of the file, without the line ends at its end', async () => {
  const path = secretFile(` ${SECRET} \r\n\n`);
  const loader = loaderOf({ APP_DB_PASSWORD_FILE: path, APP_DB__USER: 'root' });
  expect(await loader.load()).toEqual({ db: { password: ` ${SECRET} `, user: 'root' } });
  expect(loader.describe()).toEqual([
    expect.objectContaining({ path: ['db', 'password'], source: `${path} (APP_DB_PASSWORD_FILE)` }),
    expect.objectContaining({ path: ['db', 'user'], source: 'environment APP_*' }),
  ]);
  expect(`${loader.describe('text')}${JSON.stringify(loader.status())}`).not.toContain(SECRET);
});

test('the file is named as the origin of its value also below the key where the source is mounted', async () => {
  const path = secretFile(SECRET);
  const env = { APP_PASSWORD_FILE: path };
  const loader = new ConfigLoader({ sources: [{ env: { prefix: 'APP_', env, files: true }, at: 'db' }] });
  onTestFinished(() => loader.close());
  expect(await loader.load()).toEqual({ db: { password: SECRET } });
  expect(loader.describe()).toMatchObject([
    { path: ['db', 'password'], source: `${path} (APP_PASSWORD_FILE)` },
  ]);
});

test('the file is followed, and its last good text stays while it is missing', async () => {
  const mount = join(temporaryDirectory(), 'secret');
  mkdirSync(mount);
  const volume = new KubeletVolume(mount);
  volume.publish({ password: 'one\n' });
  const loader = loaderOf({ APP_DB_PASSWORD_FILE: join(mount, 'password') });
  await loader.load();
  const next = (event: 'change' | 'unreadable'): Promise<unknown> =>
    new Promise((resolve) => void loader.once(event, resolve));
  const changed = next('change');
  volume.publish({ password: 'two\n' });
  expect(await changed).toMatchObject({ current: { db: { password: 'two' } }, paths: [['db', 'password']] });
  const unreadable = next('unreadable');
  volume.publish({ other: 'x' });
  expect(await unreadable).toMatchObject({ source: 'environment APP_*' });
  expect(loader.current).toEqual({ db: { password: 'two', user: 'app' } });
  const back = next('change');
  volume.publish({ password: 'three' });
  expect(await back).toMatchObject({ current: { db: { password: 'three' } } });
});

test('a file with a relative path is followed by the same watch after each change', async () => {
  const watch = vi.spyOn(fs, 'watch');
  onTestFinished(() => watch.mockRestore());
  const path = secretFile('one');
  const loader = loaderOf({ APP_DB_PASSWORD_FILE: relative(process.cwd(), path) });
  await loader.load();
  const watches = (): number =>
    watch.mock.calls.filter(([of]) => String(of).startsWith(dirname(path))).length;
  const atFirst = watches();
  const changed = new Promise((resolve) => void loader.once('change', resolve));
  writeFileSync(path, 'two');
  await changed;
  expect(loader.current).toMatchObject({ db: { password: 'two' } });
  expect(watches()).toBe(atFirst);
});

test('a file that its variable no longer names is not watched', async () => {
  const watch = vi.spyOn(fs, 'watch');
  onTestFinished(() => watch.mockRestore());
  const [path, other] = [secretFile('one'), secretFile('other')];
  const env = { APP_DB_PASSWORD_FILE: path };
  const loader = loaderOf(env);
  await loader.load();
  const open = new Set<string>();
  for (const [at, [of]] of watch.mock.calls.entries()) {
    const { value } = watch.mock.results[at] as { value: fs.FSWatcher };
    open.add(String(of));
    value.once('close', () => open.delete(String(of)));
  }
  const isWatched = (): boolean => [...open].some((of) => of.startsWith(dirname(path)));
  expect(isWatched()).toBe(true);
  env.APP_DB_PASSWORD_FILE = other;
  writeFileSync(path, 'two');
  await expect.poll(() => loader.current).toMatchObject({ db: { password: 'other' } });
  await expect.poll(isWatched).toBe(false);
});

test('a file that was missing in a load that failed is followed by the next one', async () => {
  const path = join(temporaryDirectory(), 'password');
  const loader = loaderOf({ APP_DB_PASSWORD_FILE: path });
  await expect(loader.load()).rejects.toThrow('no such file');
  writeFileSync(path, 'one');
  await loader.load();
  const changed = new Promise((resolve) => void loader.once('change', resolve));
  writeFileSync(path, 'two');
  await changed;
  expect(loader.current).toMatchObject({ db: { password: 'two' } });
});

test('an empty variable is unset, and its file sets the key', async () => {
  const env = { APP_DB_PASSWORD: '', APP_DB_PASSWORD_FILE: secretFile(SECRET) };
  expect(await loaderOf(env).load()).toMatchObject({ db: { password: SECRET } });
});

test.each<[string, Record<string, string>, (path: string) => string]>([
  [
    'that is set in both ways',
    { APP_DB_PASSWORD: 'x' },
    () =>
      'APP_DB_PASSWORD and APP_DB_PASSWORD_FILE are both set, and both set the same key: unset one of them',
  ],
  [
    'whose file is missing',
    { APP_DB_PASSWORD_FILE: '/no/such/file' },
    () => 'APP_DB_PASSWORD_FILE: /no/such/file: no such file',
  ],
])('a variable %s is refused by name', async (_, env, message) => {
  needs('posix');
  const path = secretFile(SECRET);
  const loader = loaderOf({ APP_DB_PASSWORD_FILE: path, ...env });
  const { problems } = (await loader.load().catch((error: unknown) => error)) as ConfigError;
  expect(problems.map((problem) => problem.message)).toEqual([
    expect.stringContaining(`environment APP_*: ${message(path)}`),
  ]);
});

test('a message about such a value names the variable and not the value', async () => {
  const path = secretFile(SECRET);
  const validate = (): never => {
    throw Object.assign(new Error(SECRET), { issues: [{ message: SECRET, path: ['db', 'password'] }] });
  };
  const env = { APP_DB_PASSWORD_FILE: path };
  const sources = [{ values: { db: { password: '' } } }, { env: { prefix: 'APP_', env, files: true } }];
  const loader = new ConfigLoader({ sources, validate });
  const { message } = (await loader.load().catch((error: unknown) => error)) as ConfigError;
  expect(message).toContain('environment APP_*: db.password (set by APP_DB_PASSWORD_FILE): ');
  expect(message).not.toContain(SECRET);
});

test('such a variable is text unless the option asks for it, and an array names those that are files', async () => {
  const path = secretFile(SECRET);
  const env = { APP_LOG__FILE: '/var/log/app', APP_DB_PASSWORD_FILE: path };
  expect(await loaderOf(env, false).load()).toMatchObject({
    log: { file: '/var/log/app' },
    db_password_file: path,
  });
  expect(await loaderOf(env, ['APP_DB_PASSWORD_FILE']).load()).toEqual({
    log: { file: '/var/log/app' },
    db: { password: SECRET, user: 'app' },
  });
  expect(() => loaderOf(env, [7] as never)).toThrow(
    'option "files" must be a boolean, or an array of names of variables',
  );
});

test('after close() no file is watched any more, and the loader cannot be told of a change', async () => {
  const path = secretFile('one');
  const loader = loaderOf({ APP_DB_PASSWORD_FILE: path });
  await loader.load();
  await loader.close();
  writeFileSync(path, 'two');
  expect(loader.current).toMatchObject({ db: { password: 'one' } });
});
