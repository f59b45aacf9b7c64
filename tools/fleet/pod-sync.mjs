// node tools/bench/run.mjs pod-sync: 10 000 pods that mount 1 001 ConfigMaps, a real `PodSync`, and an API server in memory, on one clock.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { PodSync } from '@resilient-watcher/sync-pods';
import { FakeClock } from 'resilient-watcher/testing';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

const PODS = 10_000;
/** Each is mounted by ten pods. One more is mounted by all of them. */
const OBJECTS = 1_000;
const SHARED = 'shared';

/** What `PodSync` asks of an API server: lists, watches, and patches that answer at once. */
class Server {
  /** The times of the patches, s. */
  patches = [];
  #clock;
  #version = 1;
  #objects = new Map();
  #pods = new Map();
  #watches = new Map();

  constructor(clock) {
    this.#clock = clock;
    for (let number = 0; number < OBJECTS; number += 1)
      this.#objects.set(`config-${number}`, this.#object(`config-${number}`));
    this.#objects.set(SHARED, this.#object(SHARED));
    for (let number = 0; number < PODS; number += 1) {
      const names = [`config-${number % OBJECTS}`, SHARED];
      this.#pods.set(`pod-${number}`, {
        ...this.#object(`pod-${number}`),
        spec: {
          nodeName: 'node',
          containers: [{ volumeMounts: names.map((name) => ({ name, mountPath: `/${name}` })) }],
          volumes: names.map((name) => ({ name, configMap: { name } })),
        },
      });
    }
  }

  change(name) {
    const object = { metadata: { ...this.#objects.get(name).metadata, resourceVersion: this.#next() } };
    this.#objects.set(name, object);
    this.#send('configmaps', object);
  }

  async request({ method, path, body }) {
    if (method === 'PATCH') {
      const pod = this.#pods.get(path.split('?')[0].split('/').at(-1));
      pod.metadata = {
        ...pod.metadata,
        annotations: body.metadata.annotations,
        resourceVersion: this.#next(),
      };
      this.patches.push(Math.floor(this.#clock.monotonic() / 1_000));
      this.#send('pods', pod);
      return {};
    }
    const url = new URL(path, 'http://server');
    const all = [...(url.pathname.endsWith('/pods') ? this.#pods : this.#objects).values()];
    const [from, limit] = ['continue', 'limit'].map((name) => Number(url.searchParams.get(name)));
    const end = from + limit;
    const next = end < all.length ? { continue: String(end) } : {};
    // As if it came over the network: nothing that is kept of it is shared with the server.
    const items = JSON.parse(JSON.stringify(all.slice(from, end)));
    return { items, metadata: { resourceVersion: String(this.#version), ...next } };
  }

  async *lines({ path, signal }) {
    const waiting = { lines: [], wake() {} };
    const url = new URL(path, 'http://server');
    this.#watches.set(url.pathname.split('/').at(-1), waiting);
    signal.addEventListener('abort', () => waiting.wake());
    if (url.searchParams.has('sendInitialEvents')) {
      const all = url.pathname.endsWith('/pods') ? this.#pods : this.#objects;
      for (const object of all.values()) yield JSON.stringify({ type: 'ADDED', object });
      const metadata = {
        resourceVersion: String(this.#version),
        annotations: { 'k8s.io/initial-events-end': 'true' },
      };
      yield JSON.stringify({ type: 'BOOKMARK', object: { metadata } });
    }
    for (;;) {
      while (waiting.lines.length > 0) yield* waiting.lines.splice(0);
      signal.throwIfAborted();
      await new Promise((resolve) => (waiting.wake = resolve));
    }
  }

  #object(name) {
    return { metadata: { namespace: 'shop', name, uid: `uid-of-${name}`, resourceVersion: this.#next() } };
  }

  #next() {
    this.#version += 1;
    return String(this.#version);
  }

  #send(resource, object) {
    const watch = this.#watches.get(resource);
    watch?.lines.push(JSON.stringify({ type: 'MODIFIED', object }));
    watch?.wake();
  }
}

const mebibytes = (bytes) => Number((bytes / 2 ** 20).toFixed(1));

/** Lets five minutes pass, in each second of which `change` may change objects, and prints what happened. */
async function live(name, change, options) {
  const clock = new FakeClock();
  const server = new Server(clock);
  collectGarbage();
  const empty = process.memoryUsage().heapUsed;
  const sync = new PodSync({ client: server, clock, namespaces: ['shop'], random: () => 0, ...options });
  const delays = [];
  sync.on('synced', ({ delayMs }) => delays.push(delayMs));
  await sync.start();
  collectGarbage();
  const listed = process.memoryUsage().heapUsed;
  let longest = 0;
  for (let second = 0; second < 300; second += 1) {
    change(server, second);
    await clock.advance(1_000);
    longest = Math.max(longest, sync.status().waiting);
  }
  const perSecond = new Map();
  for (const second of server.patches) perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
  const rates = [...perSecond.values()].sort((one, other) => other - one);
  const { synced, repeated, behind } = sync.status();
  delays.sort((one, other) => one - other);
  collectGarbage();
  console.log(name);
  console.table({
    'pods synced': synced,
    'patches repeated': repeated,
    'pods behind': behind,
    'most patches in a second': rates[0],
    'median of the seconds with a patch': rates[Math.floor(rates.length / 2)],
    'longest queue at the end of a second': longest,
    'median delay, s': delays[Math.floor(delays.length / 2)] / 1_000,
    'longest delay, s': delays.at(-1) / 1_000,
    'heap after the lists, MiB': mebibytes(listed - empty),
    'heap at the end, MiB': mebibytes(process.memoryUsage().heapUsed - empty),
  });
  await sync.close();
}

const changeShared = (server, second) => second === 0 && server.change(SHARED);
const changeEach = (perSecond) => (server, second) => {
  for (let number = second * perSecond; number < Math.min(OBJECTS, (second + 1) * perSecond); number += 1)
    server.change(`config-${number}`);
};

await live('the object that all pods mount changes', changeShared);
await live('the same with --max-patches-per-second 120', changeShared, { maxPatchesPerSecond: 120 });
await live('1 000 objects change, 4 a second', changeEach(4));
await live('1 000 objects change, 10 a second', changeEach(10));
