/** Paths of Windows: `windows-program.mjs ROOT PATHS`, where `ROOT/c` is the drive C, and the paths are JSON. Prints what was told as JSON. */
import fs from 'node:fs';

import { pretend } from '../../support/windows.mjs';

const { AtomicVolume, atomicWriteFile, atomicWriteFileSync, readVolume, ResilientWatcher } =
  await import('resilient-watcher');
const { ConfigLoader, FileProvider, VolumeProvider } = await import('resilient-watcher/config');
const { TlsFiles } = await import('resilient-watcher/tls');
const { diagnose } = await import('@resilient-watcher/cli/doctor');

const root = process.argv[2];
const io = pretend(root, 'C:\\site');
const results = {};

async function watching(path, options, work) {
  const watcher = new ResilientWatcher(path, { fs: io, settleMs: 0, ...options });
  try {
    await watcher.start();
    return await work(watcher);
  } finally {
    await watcher.close();
  }
}

const nextChange = (watcher) => new Promise((resolve) => watcher.once('change', resolve));
const failure = async (work) => {
  try {
    return await work();
  } catch ({ code, message, path }) {
    return { code, message, path };
  }
};

const url = (path) => new URL(`file:///${path}`);
results.spellings = {};
for (const path of JSON.parse(process.argv[3])) {
  const given = path.startsWith('file:') ? new URL(path) : path;
  results.spellings[path] = await watching(given, {}, ({ current, name, path: told, status }) => ({
    kind: current.kind,
    content: String(current.content),
    told,
    name,
    path: current.path,
    realPath: current.realPath,
    keys: [...current.files.keys()],
  }));
}

results.tree = await watching('c:/site/', { recursive: true }, async (watcher) => {
  const { current } = watcher;
  const files = [...current.files].map(([key, { path, realPath }]) => [key, path, realPath]);
  const added = nextChange(watcher);
  fs.writeFileSync(`${root}/c/site/sub/new.env`, 'NEW=1\n');
  const { added: keys } = await added;
  await watcher.remove('sub\\deep');
  const outside = await failure(() => watcher.remove('D:\\app.env'));
  const removed = [...watcher.current.files.keys()];
  await watcher.add('C:\\SITE\\sub\\deep');
  return { path: current.path, realPath: current.realPath, files, keys, removed, outside };
});

results.group = await watching(['C:\\site\\app.env', url('D:/app.env')], {}, async (watcher) => {
  const { path, current } = watcher;
  await watcher.add('//server/share/app.env');
  return {
    path,
    keys: [...current.files.keys()],
    added: [...watcher.current.files.keys()],
    twice: await failure(() => watcher.add('c:/site/app.env')),
  };
});

results.drives = {
  drive: await watching('D:\\', {}, ({ path, name, current }) => [path, name, [...current.files.keys()]]),
  share: await watching('\\\\server\\share', {}, ({ path, name, current }) => [
    path,
    name,
    [...current.files.values()].map((file) => file.path),
  ]),
  missing: await watching('Z:\\a\\b', {}, ({ current, state }) => [current.kind, current.path, state]),
};

results.events = await watching('C:\\links\\absolute', { resyncIntervalMs: 0 }, async (watcher) => {
  const changed = nextChange(watcher);
  fs.writeFileSync(`${root}/c/site/next`, 'LEVEL=debug\n');
  fs.renameSync(`${root}/c/site/next`, `${root}/c/site/app.env`);
  const { current } = await changed;
  return [String(current.content), current.realPath];
});

const hints = [];
const backend = {
  name: 'mine',
  subscribe: (sink) => ({
    setDirectories(directories) {
      hints.push(...directories.map(({ path }) => path));
      backend.sink = sink;
      return [];
    },
    close() {},
  }),
};
results.backend = await watching(
  'C:\\site',
  { backend, recursive: true, resyncIntervalMs: 0 },
  async (watcher) => {
    const changed = nextChange(watcher);
    fs.writeFileSync(`${root}/c/site/sub/new.env`, 'NEW=2\n');
    backend.sink.hint({ path: 'c:\\site\\sub\\new.env' });
    return { changed: (await changed).changed, directories: [...new Set(hints)].sort() };
  },
);

results.written = [
  await atomicWriteFile('C:\\site\\out.txt', 'x', { fs: io }),
  atomicWriteFileSync('c:/site/out.txt', 'y', { fs: io }),
  await atomicWriteFile('C:\\links\\absolute', 'LEVEL=warn\n', { fs: io }),
  await atomicWriteFile('C:\\links\\directory\\linked.txt', 'z', { fs: io, createDirectory: true }),
  await atomicWriteFile('\\\\server\\share\\out.txt', 'x', { fs: io }),
];
results.refused = [
  await failure(() => atomicWriteFile('C:\\none\\out.txt', 'x', { fs: io })),
  await failure(() => atomicWriteFile('C:\\site\\app.env\\out.txt', 'x', { fs: io })),
  await failure(() => atomicWriteFile('C:\\site\\sub\\', 'x', { fs: io })),
  await failure(() => readVolume('C:\\none', { fs: io })),
  await failure(() => readVolume('C:/site/app.env', { fs: io })),
];

const loader = new ConfigLoader({
  sources: [
    { provider: new FileProvider('app.env', { fs: io }) },
    { provider: new VolumeProvider('C:/conf', { fs: io }) },
  ],
});
results.config = { values: await loader.load(), describe: loader.describe() };
await loader.close();
results.missingConfig = await failure(() =>
  new ConfigLoader({ sources: [{ provider: new FileProvider('c:/none.yaml', { fs: io }) }] }).load(),
);
const files = new TlsFiles('C:/none', { fs: io, persistent: false });
files.on('rejected', ({ error }) => (results.tls = error.message));
await files.start();
await files.close();
results.volume = new AtomicVolume('c:/site/volume/').directory;
results.diagnosis = await failure(async () => (await diagnose('c:/none')).path);
process.stdout.write(JSON.stringify(results, undefined, 1));
