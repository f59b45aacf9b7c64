/**
 * What an author meets on Windows or macOS, with the built package and nothing else: `node scenarios.mjs [NAME…]`. Needs no test
 * runner, so that it runs where one does not: `WINE=1` says that this is Wine, whose limits are skipped by name.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import {
  atomicWriteFile,
  atomicWriteFileSync,
  AtomicVolume,
  readVolume,
  ResilientWatcher,
  SecretFile,
  TokenFile,
  waitFor,
} from '../../dist/index.js';
import { ConfigLoader, FileProvider, VolumeProvider } from '../../dist/config.js';
import { diagnose } from '../../packages/cli/dist/doctor.js';
import { PROGRAM_SCENARIOS } from './program.mjs';
import { attempt, equal, isWindows, isWine, LIMIT_MS, rejection, skip, until } from './tools.mjs';

/** Watches until the work has ended. */
async function watching(target, options, work) {
  const watcher = new ResilientWatcher(target, options);
  const changes = [];
  watcher.on('change', (change) => changes.push(change));
  await watcher.start();
  try {
    return await work(watcher, changes);
  } finally {
    await watcher.close();
  }
}

const contentOf = ({ current }, key) =>
  String((key === undefined ? current : current?.files.get(key))?.content);

const jwt = (exp, id) =>
  [
    { alg: 'RS256' },
    { iss: 'test', sub: 'system:serviceaccount:a:b', iat: exp - 7200, exp, jti: id },
    'signature',
  ]
    .map((part) => Buffer.from(typeof part === 'string' ? part : JSON.stringify(part)).toString('base64url'))
    .join('.');

const SPELLINGS = {
  absolute: (file) => file,
  'a file: URL': (file) => pathToFileURL(file),
  relative: (file) => path.relative(process.cwd(), file),
  'relative with a dot': (file) => `.${path.sep}${path.relative(process.cwd(), file)}`,
  ...(isWindows && {
    'with slashes': (file) => file.replaceAll('\\', '/'),
    'mixed slashes': (file) => file.replace(/\\(?=[^\\]*$)/, '/'),
    'a small drive letter': (file) => file[0].toLowerCase() + file.slice(1),
    'without a drive': (file) => file.slice(2),
    'relative to a drive': (file) => `${file.slice(0, 2)}${path.relative(process.cwd(), file)}`,
    'with the prefix for long paths': (file) => `\\\\?\\${file}`,
  }),
};

/** By name; each gets a directory of its own. */
const SCENARIOS = {};
for (const [name, spell] of Object.entries(SPELLINGS)) {
  SCENARIOS[`a file is found and followed by a path that is ${name}`] = async (root) => {
    const file = path.join(root, 'app.yaml');
    fs.writeFileSync(file, 'a: 1');
    await watching(spell(file), {}, async (watcher) => {
      equal([contentOf(watcher), watcher.path, watcher.current.realPath], ['a: 1', file, file]);
      fs.writeFileSync(file, 'a: 2');
      await until('changed', () => contentOf(watcher) === 'a: 2');
    });
  };
}
for (const backend of ['fs', 'poll']) {
  Object.assign(SCENARIOS, {
    async [`${backend}: a file that is replaced by rename`](root) {
      const file = path.join(root, 'app.yaml');
      fs.writeFileSync(file, '0');
      await watching(file, { backend }, async (watcher) => {
        for (const text of ['1', '2', '3']) {
          fs.writeFileSync(`${file}.new`, text);
          fs.renameSync(`${file}.new`, file);
          await until('replaced', () => contentOf(watcher) === text);
        }
      });
    },
    async [`${backend}: a file that comes, goes and comes back, below directories that do not exist`](root) {
      const file = path.join(root, 'a', 'b', 'app.yaml');
      await watching(file, { backend, missingGraceMs: 100 }, async (watcher) => {
        equal(watcher.current.kind, 'missing');
        fs.mkdirSync(path.dirname(file), { recursive: true });
        fs.writeFileSync(file, '1');
        await until('there', () => contentOf(watcher) === '1');
        fs.unlinkSync(file);
        await until('gone', () => watcher.current.kind === 'missing');
        fs.writeFileSync(file, '2');
        await until('back', () => contentOf(watcher) === '2');
      });
    },
    async [`${backend}: a directory`](root) {
      fs.writeFileSync(path.join(root, 'one'), '1');
      await watching(root, { backend, missingGraceMs: 100 }, async (watcher) => {
        fs.writeFileSync(path.join(root, 'two'), '2');
        await until('added', () => contentOf(watcher, 'two') === '2');
        fs.renameSync(path.join(root, 'two'), path.join(root, 'three'));
        await until('renamed', () => [...watcher.current.files.keys()].join() === 'one,three');
      });
    },
    async [`${backend}: a tree with keys that have slashes`](root) {
      fs.mkdirSync(path.join(root, 'a', 'b'), { recursive: true });
      fs.writeFileSync(path.join(root, 'a', 'b', 'one'), '1');
      await watching(root, { backend, recursive: true, missingGraceMs: 100 }, async (watcher) => {
        equal([...watcher.current.files.keys()], ['a/b/one']);
        equal(watcher.current.files.get('a/b/one').path, path.join(root, 'a', 'b', 'one'));
        fs.mkdirSync(path.join(root, 'a', 'c', 'd'), { recursive: true });
        fs.writeFileSync(path.join(root, 'a', 'c', 'd', 'two'), '2');
        await until('added', () => contentOf(watcher, 'a/c/d/two') === '2');
        fs.writeFileSync(path.join(root, 'a', 'c', 'd', 'two'), 'changed');
        await until('changed', () => contentOf(watcher, 'a/c/d/two') === 'changed');
        // Wine keeps a directory as long as it is watched.
        const removed = isWine && backend === 'fs' ? ['d', 'two'] : [];
        fs.rmSync(path.join(root, 'a', 'c', ...removed), { recursive: true });
        await until('removed', () => [...watcher.current.files.keys()].join() === 'a/b/one');
      });
    },
  });
}
Object.assign(SCENARIOS, {
  async 'a group of files'(root) {
    const [one, two, three] = ['one', 'two', 'three'].map((name) => path.join(root, name));
    for (const file of [one, two, three]) fs.writeFileSync(file, '1');
    await watching([one, pathToFileURL(two)], {}, async (watcher) => {
      equal([...watcher.current.files.keys()], [one, two]);
      await watcher.add(three);
      fs.writeFileSync(two, '2');
      await until('changed', () => contentOf(watcher, two) === '2');
      equal([...watcher.current.files.keys()], [one, two, three]);
    });
  },
  async 'a path with more than 260 characters'(root) {
    const deep = path.join(root, ...Array.from({ length: 8 }, () => 'd'.repeat(40)));
    fs.mkdirSync(deep, { recursive: true });
    const file = path.join(deep, 'app.yaml');
    await atomicWriteFile(file, '1');
    await watching(file, {}, async (watcher) => {
      await atomicWriteFile(file, '2');
      await until('changed', () => contentOf(watcher) === '2');
    });
  },
  async 'a directory that is removed and created again'(root) {
    if (isWine)
      skip(
        'Wine keeps a directory as long as it is watched; test/watch/backends/node-fs.test.ts has a stand-in',
      );
    const directory = path.join(root, 'd');
    fs.mkdirSync(directory);
    fs.writeFileSync(path.join(directory, 'app'), '1');
    await watching(path.join(directory, 'app'), { missingGraceMs: 100 }, async (watcher) => {
      fs.rmSync(directory, { recursive: true });
      await until('gone', () => watcher.current.kind === 'missing');
      await until('free', () => attempt(() => fs.mkdirSync(directory)));
      fs.writeFileSync(path.join(directory, 'app'), '2');
      await until('back', () => contentOf(watcher) === '2');
    });
  },
  async 'after close, directories can be renamed and removed'(root) {
    const directory = path.join(root, 'd');
    fs.mkdirSync(path.join(directory, 'sub'), { recursive: true });
    fs.writeFileSync(path.join(directory, 'sub', 'app'), '1');
    await watching(directory, { recursive: true }, async () => undefined);
    fs.renameSync(directory, path.join(root, 'e'));
    fs.rmSync(path.join(root, 'e'), { recursive: true });
    equal(fs.readdirSync(root), []);
  },
  async 'a drive that does not exist is missing'() {
    const file = isWindows ? 'Q:\\none\\app.yaml' : '/none/app.yaml';
    await watching(file, {}, async (watcher) =>
      equal([watcher.current.kind, watcher.path], ['missing', file]),
    );
  },
  async 'configuration in all formats, with lines that end in CRLF'(root) {
    const source = (name, text) => {
      const file = path.join(root, name);
      fs.writeFileSync(file, text);
      return { provider: new FileProvider(file) };
    };
    // The packages of the parsers are loaded on first use, which takes a while on Wine.
    const loader = new ConfigLoader({
      parseTimeoutMs: LIMIT_MS,
      sources: [
        source('a.yaml', 'a:\r\n  b: "1"\r\n  text: |\r\n    one\r\n    two\r\n'),
        source('b.env', '# comment\r\nLEVEL=info\r\nNAME="a b"\r\n'),
        source('c.toml', 'c = 3\r\n[t]\r\nx = "y"\r\n'),
        source('d.jsonc', '{\r\n  // comment\r\n  "d": 4\r\n}\r\n'),
      ],
    });
    try {
      const { a, LEVEL, NAME, c, t, d } = await loader.load();
      equal([a, LEVEL, NAME, c, t, d], [{ b: '1', text: 'one\ntwo\n' }, 'info', 'a b', 3, { x: 'y' }, 4]);
      await loader.start();
      fs.writeFileSync(path.join(root, 'b.env'), 'LEVEL=debug\r\n');
      await until('reloaded', () => loader.current.LEVEL === 'debug');
    } finally {
      await loader.close();
    }
  },
  async 'configuration in a directory; an error names the path'(root) {
    fs.writeFileSync(path.join(root, 'key'), 'value');
    const loader = new ConfigLoader({ sources: [{ provider: new VolumeProvider(root) }] });
    equal((await loader.load()).key, 'value');
    equal(loader.describe()[0].source, root);
    await loader.close();
    const file = path.join(root, 'none.yaml');
    const missing = new ConfigLoader({ sources: [{ provider: new FileProvider(file) }] });
    const { message } = await rejection(missing.load());
    if (!message.includes(file)) throw new Error(message);
    await missing.close();
  },
  async 'a secret that is rotated'(root) {
    const file = path.join(root, 'password');
    fs.writeFileSync(file, 'one\r\n');
    const secret = new SecretFile(file);
    await secret.start();
    try {
      const { value } = await secret.get();
      await atomicWriteFile(file, 'two');
      await until('rotated', async () => (await secret.get()).value !== value);
    } finally {
      await secret.close();
    }
  },
  async 'a token that is replaced'(root) {
    const file = path.join(root, 'token');
    const now = Math.trunc(Date.now() / 1_000);
    fs.writeFileSync(file, jwt(now + 3_600, 'one'));
    const token = new TokenFile(file);
    await token.start();
    try {
      const first = (await token.get()).expiresAt;
      await atomicWriteFile(file, jwt(now + 7_200, 'two'));
      await until('replaced', async () => (await token.get()).expiresAt > first);
    } finally {
      await token.close();
    }
  },
  async 'files are written whole, and only if they have changed'(root) {
    const file = path.join(root, 'new', 'file');
    equal((await rejection(atomicWriteFile(file, 'x'))).code, 'ERR_WRITE_NO_DIRECTORY');
    equal(await atomicWriteFile(file, 'x', { createDirectory: true }), {
      path: file,
      written: true,
      bytes: 1,
    });
    for (const options of [{}, { mode: 0o600 }, { mode: 0o640 }]) {
      await atomicWriteFile(file, 'y', options);
      equal(
        (await atomicWriteFile(file, 'y', { ...options, ifChanged: true })).written,
        false,
        'written again',
      );
    }
    equal(atomicWriteFileSync(file, 'z').written, true);
    equal([fs.readFileSync(file, 'utf8'), fs.readdirSync(path.dirname(file))], ['z', ['file']]);
  },
  async 'a hundred writes of one file at once'(root) {
    const file = path.join(root, 'file');
    await Promise.all(Array.from({ length: 100 }, (_, at) => atomicWriteFile(file, String(at))));
    equal([fs.readFileSync(file, 'utf8'), fs.readdirSync(root)], ['99', ['file']]);
  },
  async 'a file that a reader holds open is replaced'(root) {
    const file = path.join(root, 'file');
    fs.writeFileSync(file, 'old');
    const fd = fs.openSync(file, 'r');
    setTimeout(() => fs.closeSync(fd), 500);
    await atomicWriteFile(file, 'new');
    equal(fs.readFileSync(file, 'utf8'), 'new');
  },
  async 'a volume can be read, and on Windows is refused when written'(root) {
    fs.writeFileSync(path.join(root, 'key'), 'value');
    equal([...(await readVolume(root)).files.keys()], ['key']);
    if (!isWindows) return;
    const volume = new AtomicVolume(path.join(root, 'volume'), { createDirectory: true });
    equal((await rejection(volume.write({ key: 'value' }))).code, 'ERR_WRITE_UNSUPPORTED');
    await volume.close();
  },
  async 'waitFor resolves when a file comes'(root) {
    const file = path.join(root, 'file');
    const waiting = waitFor(file, ({ kind }) => kind === 'file', { timeoutMs: 30_000 });
    fs.writeFileSync(file, '1');
    await waiting;
  },
  async 'a path is diagnosed'(root) {
    const { path: told, findings } = await diagnose(path.join(root, 'none'));
    equal([told, findings[0].id], [path.join(root, 'none'), 'MISSING']);
  },
  async 'a certificate that is renewed is served to new connections'(root) {
    const { generate } = await import('selfsigned').catch(() =>
      skip('the package selfsigned is not installed'),
    );
    const https = await import('node:https');
    const tls = await import('node:tls');
    const { serveTls, TlsFiles } = await import('../../dist/tls.js');
    const renew = async () => {
      const { cert, private: key } = await generate([{ name: 'commonName', value: 'localhost' }], {
        keyType: 'ec',
        algorithm: 'sha256',
      });
      fs.writeFileSync(path.join(root, 'tls.crt'), cert);
      fs.writeFileSync(path.join(root, 'tls.key'), key);
    };
    await renew();
    const files = new TlsFiles(root);
    const server = https.createServer((_, response) => response.end('ok'));
    const served = await serveTls(server, files);
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    const shown = () =>
      new Promise((resolve, reject) => {
        const { port } = server.address();
        const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
          resolve(socket.getPeerCertificate().fingerprint256);
          socket.end();
        });
        socket.on('error', reject);
      });
    try {
      const first = await shown();
      await renew();
      await until('renewed', async () => (await shown()) !== first);
    } finally {
      server.close();
      await served.close();
      await files.close();
    }
  },
  async 'a rename of the case only'(root) {
    if (isWine) skip('Wine does nothing then; test/watch/folded-names.test.ts has a stand-in');
    fs.writeFileSync(path.join(root, 'Config.yaml'), '1');
    await watching(root, { recursive: true, missingGraceMs: 100 }, async (watcher) => {
      fs.renameSync(path.join(root, 'Config.yaml'), path.join(root, 'config.yaml'));
      await until('renamed', () => [...watcher.current.files.keys()].join() === 'config.yaml');
    });
  },
  async 'links are followed'(root) {
    if (isWine) skip('Wine makes no links; test/watch/process/windows-paths.test.ts has a stand-in');
    fs.writeFileSync(path.join(root, 'file'), '1');
    try {
      fs.symlinkSync(path.join(root, 'file'), path.join(root, 'link'), 'file');
    } catch ({ code }) {
      skip(`links cannot be made here (${code}); test/watch/process/windows-paths.test.ts has a stand-in`);
    }
    await watching(path.join(root, 'link'), {}, async (watcher) => {
      equal([contentOf(watcher), watcher.current.realPath], ['1', path.join(root, 'file')]);
      fs.writeFileSync(path.join(root, 'file'), '2');
      await until('changed', () => contentOf(watcher) === '2');
    });
  },
  async 'a tree with the backend parcel'(root) {
    if (isWine) skip('Wine has no recursive events');
    await import('@parcel/watcher').catch(() => skip('@parcel/watcher is not installed for this system'));
    await watching(root, { backend: 'parcel', recursive: true }, async (watcher) => {
      fs.writeFileSync(path.join(root, 'one'), '1');
      await until('added', () => contentOf(watcher, 'one') === '1');
    });
  },
  ...PROGRAM_SCENARIOS,
});

const wanted = process.argv.slice(2);
const base = fs.realpathSync.native(fs.mkdtempSync(path.join(os.tmpdir(), 'scenarios-')));
process.chdir(base);
let failed = 0;
let count = 0;
for (const [name, scenario] of Object.entries(SCENARIOS)) {
  if (wanted.length > 0 && !wanted.some((each) => name.includes(each))) continue;
  count += 1;
  const root = path.join(base, String(count));
  fs.mkdirSync(root);
  const began = performance.now();
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${LIMIT_MS} ms`)), LIMIT_MS);
  });
  const result = await Promise.race([scenario(root), limit]).then(
    () => 'ok',
    (error) => {
      if (error.isSkipped) return `skipped: ${error.message}`;
      failed += 1;
      return `FAILED: ${error.stack}`;
    },
  );
  clearTimeout(timer);
  console.log(`${name}: ${result} (${Math.round(performance.now() - began)} ms)`);
}
process.chdir(os.tmpdir());
// A process that was killed may still hold its working directory.
attempt(() => fs.rmSync(base, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 }));
console.log(`${count} scenarios, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
