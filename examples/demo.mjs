/**
 * A tour of about ten seconds. First another process updates, breaks and recreates the volume of one watcher;
 * then, in `demo-cluster.mjs`, come the tokens and kubeconfigs of a cluster.
 *
 *     npm run demo
 */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ResilientWatcher } from 'resilient-watcher';
import { ScriptedBackend } from 'resilient-watcher/testing';

import { showCluster } from './demo-cluster.mjs';
import { color, createReport } from './demo-report.mjs';

/** Longer than any step takes, ms. A change that has not been seen after this time counts as missed. */
const PATIENCE_MS = 4_000;
/** The pause between two steps, ms, for people who read along. */
const PAUSE_MS = 350;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const now = () => Number(process.hrtime.bigint()) / 1e6;

// --------------------------------------------------------------------------------------------- set-up

const root = mkdtempSync(join(tmpdir(), 'resilient-watcher-demo-'));
const directory = join(root, 'policy');
const path = join(directory, 'policy.yaml');
const publisher = fork(fileURLToPath(new URL('demo-publisher.mjs', import.meta.url)));

process.on('exit', () => {
  publisher.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130));
publisher.on('exit', () => process.exit(1));

/** Makes the other process do something; resolves to the time at which that took effect, ms. */
const ask = (command, parameters = {}) =>
  new Promise((resolve) => {
    publisher.once('message', resolve);
    publisher.send({ command, directory, ...parameters });
  });

// ------------------------------------------------------------------------------------------- recording

const latencies = [];
const report = createReport();
const { scene, line } = report;

/** Records the events of a watcher, with their times. */
function listenTo(watcher, events) {
  const seen = [];
  let wake = () => {};
  for (const event of events) {
    watcher.on(event, (detail) => {
      seen.push({ event, detail, at: now() });
      wake();
    });
  }
  return {
    /** Resolves to the first event that matches; drops the events before it. */
    async expect(fits) {
      const deadline = now() + PATIENCE_MS;
      for (;;) {
        const index = seen.findIndex(fits);
        if (index >= 0) return seen.splice(0, index + 1).at(-1);
        const remaining = deadline - now();
        if (remaining <= 0) return undefined;
        await Promise.race([new Promise((resolve) => (wake = resolve)), sleep(remaining)]);
      }
    },
  };
}

const isPolicy = (policy) => (seen) =>
  seen.event === 'change' && seen.detail.current.content?.toString() === `allow: ${policy}\n`;
const isMissing = ({ event, detail }) => event === 'change' && detail.current.kind === 'missing';
const is = (wanted) => (seen) => seen.event === wanted;

/** Shows one publication, and how soon it was reported. */
async function show(text, recorder, policy, how) {
  const at = await ask('publish', { policy, ...how });
  const seen = await recorder.expect(isPolicy(policy));
  if (seen) latencies.push(seen.at - at);
  line(seen !== undefined, seen && seen.at - at, text);
}

// ------------------------------------------------------------------------------------------ the steps

console.log(
  color('bold', 'resilient-watcher: one file of a mounted volume, and everything that can happen to it'),
);
console.log(`Latency: from the moment the other process makes the new content visible to the listener here.`);

await ask('publish', { policy: 'nobody' });
const watcher = new ResilientWatcher(path);
const recorder = listenTo(watcher, [
  'change',
  'revision',
  'restart',
  'degraded',
  'recovered',
  'unreadable',
  'readable',
  'error',
]);
await watcher.start();
const first = await recorder.expect(isPolicy('nobody'));
scene('A watcher starts');
line(first !== undefined, undefined, `change: allow: nobody (${watcher.status().backend}, ${watcher.state})`);
await sleep(PAUSE_MS);

scene('Swaps by rename, as kubelet on Linux makes them');
for (const policy of ['alice', 'bob', 'carol']) {
  await show(`change: allow: ${policy}`, recorder, policy);
  await sleep(PAUSE_MS);
}

scene('A swap by remove, a gap, and a new link');
await show('change: allow: dave, after a gap of 200 ms; the gap itself was not shown', recorder, 'dave', {
  swap: 'remove',
  gapMs: 200,
});
await sleep(PAUSE_MS);

scene('A new revision in which this file is the same');
const before = watcher.status().changes;
const revisedAt = await ask('publish', { policy: 'dave' });
const revised = await recorder.expect(is('revision'));
await watcher.check();
const silent = revised !== undefined && watcher.status().changes === before;
line(silent, revised && revised.at - revisedAt, 'revision, and no change: the content is the same');
await sleep(PAUSE_MS);

scene('The directory is deleted, and made again');
const removedAt = await ask('remove');
const gone = await recorder.expect(isMissing);
line(gone !== undefined, gone && gone.at - removedAt, 'change: missing, after the grace period of 500 ms');
await sleep(PAUSE_MS);
await show('change: allow: frank, in a directory that did not exist', recorder, 'frank');
await sleep(PAUSE_MS);
await show('change: allow: grace, from native events again', recorder, 'grace');
await sleep(PAUSE_MS);

scene('The backend fails, and stays down for a while');
const backend = new ScriptedBackend('flaky');
const frail = new ResilientWatcher(path, {
  backend,
  pollIntervalMs: 200,
  resyncIntervalMs: 0,
  maxRestartDelayMs: 300,
});
const witness = listenTo(frail, [
  'change',
  'restart',
  'degraded',
  'recovered',
  'unreadable',
  'readable',
  'error',
]);
await frail.start();
await witness.expect(isPolicy('grace'));
const failedAt = now();
backend.refuse(...Array.from({ length: 1_000 }, () => new Error('no inotify instance is left')));
backend.fail(new Error('the native watcher died'));
const restart = await witness.expect(is('restart'));
line(restart !== undefined, restart && restart.at - failedAt, `restart: ${restart?.detail.error.message}`);
const degraded = await witness.expect(is('degraded'));
line(degraded !== undefined, degraded && degraded.at - failedAt, 'degraded: polls every 200 ms meanwhile');
await show('change: allow: heidi, found by polling', witness, 'heidi');
const polled = latencies.pop();
backend.accept();
const recovered = await witness.expect(is('recovered'));
line(
  recovered !== undefined,
  recovered && recovered.at - failedAt,
  `recovered: ${frail.status().backend} is back`,
);
const { restarts } = frail.status();
await frail.close();

// ------------------------------------------------------------------------------------------ the summary

await recorder.expect(isPolicy('heidi'));
const { changes, resyncs } = watcher.status();
await watcher.close();
latencies.sort((a, b) => a - b);
const middle = latencies[latencies.length >> 1];
console.log(
  `\n${changes} changes, ${resyncs} of them found by the resync only, ${restarts} attempts to restart the backend; ` +
    `median latency ${middle?.toFixed(2)} ms` +
    (polled === undefined ? '.' : `, and ${polled.toFixed(0)} ms while polling.`),
);

// ---------------------------------------------------------------------------------------- the cluster

console.log(color('bold', '\nA kubeconfig in a cluster whose signing key is rotated'));
await showCluster(join(root, 'cluster'), report);

const { broken } = report;
console.log(
  broken === 0
    ? color('green', '\nNothing was missed.')
    : color('red', `\n${broken} promises were not kept.`),
);
process.exit(broken === 0 ? 0 : 1);
