/**
 * Runs in a pod: watches one thing in one way, and prints a line of JSON for each report.
 *
 *   OBSERVE   who watches: library, chokidar, chokidar-directory, fs.watch, fs.watch-directory, group, each, loader,
 *             token, refresher
 *   TARGET    what: a path; for `group` and `each` several, separated by commas. `each` prints the path as `who`
 *
 * The number of an update is in the contents, as `update: 17`. A line with `false: true` is a report without news.
 * `afterSwapMs` is the time since a bare `fs.watch` of the same process saw that `..data` had changed.
 */
import { once } from 'node:events';
import { readFileSync, readlinkSync, watch as watchDirectory } from 'node:fs';
import { dirname, join } from 'node:path';

import { ResilientWatcher, TokenFile, TokenRefresher } from 'resilient-watcher';
import { ConfigLoader, FileProvider } from 'resilient-watcher/config';
import { kubeconfigSink, tokenRequestClient } from 'resilient-watcher/kubernetes';

const { OBSERVE: who, TARGET: target } = process.env;

let last;
/** When the volume was last seen to be swapped. */
let swappedAt;

/** Called first, so that its listener runs before that of the observer for the same event. */
function watchSwaps(directory) {
  const revision = () => {
    try {
      return readlinkSync(join(directory, '..data'));
    } catch {
      return undefined;
    }
  };
  let seen = revision();
  if (seen === undefined) return;
  watchDirectory(directory, () => {
    const found = revision();
    if (found === seen) return;
    seen = found;
    swappedAt = performance.now();
  });
}

function report(content) {
  const afterSwapMs = swappedAt === undefined ? undefined : performance.now() - swappedAt;
  const text = String(content ?? '');
  const sequence = sequenceIn(text);
  const isFalse = sequence === null || text === last;
  if (sequence !== null) last = text;
  print({ sequence, false: isFalse, afterSwapMs });
}

/** The number of the update. */
function sequenceIn(content) {
  const found = /update: ?(\d+)/.exec(String(content))?.[1];
  return found === undefined ? null : Number(found);
}

function print(fields) {
  console.log(JSON.stringify({ who, at: Date.now(), ...fields }));
}

/** What programs without this library do at an event: read the file, here in the fastest way. */
function readAndReport(path) {
  let content;
  try {
    content = readFileSync(path, 'utf8');
  } catch {
    // It is away for a moment, or for good.
  }
  report(content);
}

const observers = {
  async library() {
    const watcher = new ResilientWatcher(target);
    watcher.on('change', ({ current }) => report(current.content));
    watcher.on('warning', ({ code }) => print({ warning: code }));
    await watcher.start();
  },
  async group() {
    const watcher = new ResilientWatcher(target.split(','));
    watcher.on('change', ({ current }) =>
      report([...current.files.values()].map(({ content }) => String(content)).join('\n')),
    );
    await watcher.start();
  },
  async each() {
    for (const path of target.split(',')) {
      const watcher = new ResilientWatcher(path);
      watcher.on('change', ({ current }) => print({ who: path, sequence: sequenceIn(current.content) }));
      await watcher.start();
    }
  },
  async loader() {
    const validate = ({ update, limit }) => {
      if (!Number.isInteger(limit)) throw new Error('limit must be a number');
      return { update };
    };
    const loader = new ConfigLoader({ sources: [{ provider: new FileProvider(target) }], validate });
    loader.on('change', ({ current }) => report(`update: ${current.update}`));
    loader.on('rejected', () => print({ rejected: true }));
    await loader.start();
    report(`update: ${loader.current.update}`);
  },
  async token() {
    const file = new TokenFile(target);
    file.on('change', () => print({ token: true }));
    await file.start();
  },
  async refresher() {
    const {
      KUBERNETES_SERVICE_HOST: host,
      KUBERNETES_SERVICE_PORT: port,
      NAMESPACE: namespace,
    } = process.env;
    const refresher = new TokenRefresher({
      client: tokenRequestClient({ namespace, serviceAccount: 'observer' }),
      sinks: [
        kubeconfigSink({
          path: target,
          server: `https://${host}:${port}`,
          caFile: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
        }),
      ],
    });
    refresher.on('delivered', () => print({ delivered: true }));
    refresher.on('retry', ({ error }) => print({ error: error.code }));
    await refresher.start();
  },
  async chokidar() {
    const { watch } = await import('chokidar');
    readAndReport(target);
    const watcher = watch(target, { ignoreInitial: true }).on('all', () => readAndReport(target));
    await once(watcher, 'ready');
  },
  async 'chokidar-directory'() {
    const { watch } = await import('chokidar');
    readAndReport(target);
    const watcher = watch(dirname(target), { ignoreInitial: true });
    watcher.on('all', () => readAndReport(target));
    await once(watcher, 'ready');
  },
  async 'fs.watch'() {
    readAndReport(target);
    watchDirectory(target, () => readAndReport(target));
  },
  async 'fs.watch-directory'() {
    readAndReport(target);
    watchDirectory(dirname(target), () => readAndReport(target));
  },
};

process.on('uncaughtException', ({ code, message }) => {
  print({ died: code ?? message });
  process.exitCode = 1;
  process.exit();
});
process.on('SIGTERM', () => process.exit());
if (who !== 'token' && who !== 'refresher') for (const path of target.split(',')) watchSwaps(dirname(path));
await observers[who]();
print({ ready: true });
