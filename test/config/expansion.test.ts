import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ConfigLoader, FileProvider, VolumeProvider, type ConfigError } from 'resilient-watcher/config';
import { expect, onTestFinished, test, vi } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

const SECRET = 'hunter2-hunter2';

const VARIABLES = { HOST: 'db', EMPTY: '', SECRET, NESTED: '${HOST}', _a1: 'x' };

/** What a file with this text provides, or why not. */
async function read(name: string, text: string, options = {}): Promise<unknown> {
  const path = join(temporaryDirectory(), name);
  writeFileSync(path, text);
  const provider = new FileProvider(path, { expand: VARIABLES, ...options });
  return provider.read().catch((error: unknown) => (error as ConfigError).message.replace(path, name));
}

test.each<[string, string, unknown]>([
  ['a.yaml', 'url: "pg://${HOST}:${PORT:-5432}/${EMPTY:-app}${EMPTY}"', { url: 'pg://db:5432/app' }],
  ['a.json', '{"list":[{"a":"${_a1}"}],"n":1,"b":null}', { list: [{ a: 'x' }], n: 1, b: null }],
  ['a.toml', 'a = "${HOST}-${HOST}"', { a: 'db-db' }],
  ['.env', 'A=${HOST}\nB=$HOST', { A: 'db', B: '$HOST' }],
  ['a.yaml', 'a: $${HOST}\nb: $$\nc: "${HOST:-a:-b}${NO:-a:-b}"', { a: '${HOST}', b: '$$', c: 'dba:-b' }],
  ['a.yaml', 'a: ${NESTED}', { a: '${HOST}' }],
  ['a.yaml', '"${HOST}": 1', { '${HOST}': 1 }],
])('a variable in a text is replaced, once, and never in a key: %s %s', async (name, text, values) => {
  expect(await read(name, text)).toEqual(values);
});

test.each([
  [
    'a: 1\nb:\n  c: "${PROT}"',
    'a.yaml:3:6: b.c: there is no variable PROT; ${PROT:-default} gives it a default, and $${ stands for a literal "${"',
  ],
  [
    'a: x${',
    'a.yaml:1:4: a: "${" begins a variable, as in ${NAME} or ${NAME:-default}; write $${ for a literal "${"',
  ],
  ['a: ${a.b}', 'a.yaml:1:4: a: "${" begins a variable'],
  ['a: ${HOST:+x}', 'a.yaml:1:4: a: "${" begins a variable'],
  ['a: ${}', 'a.yaml:1:4: a: "${" begins a variable'],
  ['a: ${toString}', 'a.yaml:1:4: a: there is no variable toString'],
  ['a: ${SECRET}${NO}', 'a.yaml:1:4: a: there is no variable NO'],
])(
  'what is no variable is refused with line and column, and no value is quoted: %s',
  async (text, message) => {
    const refused = await read('a.yaml', text);
    expect(refused).toContain(message);
    expect(refused).not.toContain(SECRET);
  },
);

test('variables that add more than maxBytes are refused', async () => {
  const text = `a: ${'${SECRET}'.repeat(50)}`;
  expect(await read('a.yaml', text, { maxBytes: 600 })).toContain('add more than maxBytes, 600 characters');
  expect(await read('a.yaml', `a: ${'${'.repeat(100_000)}`)).toContain('begins a variable');
});

test('without the option a text stays as it is; with true the variables are those of the environment', async () => {
  expect(await read('a.yaml', 'a: ${HOST}', { expand: false })).toEqual({ a: '${HOST}' });
  vi.stubEnv('SHOP_HOST', 'db');
  onTestFinished(() => void vi.unstubAllEnvs());
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'url'), 'pg://${SHOP_HOST}');
  expect(await new VolumeProvider(directory, { expand: true }).read()).toEqual({ url: 'pg://db' });
});

test('a message about a value in which a variable stands has its line, and not its text', async () => {
  const path = join(temporaryDirectory(), 'a.yaml');
  writeFileSync(path, 'port: 1\npassword: ${SECRET}\n');
  const refuse = (): never => {
    throw Object.assign(new Error(SECRET), { issues: [{ message: SECRET, path: ['password'] }] });
  };
  const provider = new FileProvider(path, { expand: VARIABLES });
  const loader = new ConfigLoader({ sources: [{ provider }], validate: refuse });
  onTestFinished(() => loader.close());
  const { message } = await loader.load().catch((error: unknown) => error as ConfigError);
  expect(message).toContain(`${path}:2:11: password: `);
  expect(`${message}${loader.describe('text')}${JSON.stringify(loader.status())}`).not.toContain(SECRET);
});
