/**
 * How to test a controller that watches a mounted file: with real files, fake time, scripted hints, and a
 * volume that is updated one system call at a time. `node examples/test-your-controller.mjs`
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ResilientWatcher } from 'resilient-watcher';
import { FakeClock, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';

/** The code under test. Its clock and its backend can be replaced. */
function controller(path, ports) {
  const applied = [];
  const watcher = new ResilientWatcher(path, ports);
  watcher.on('change', ({ current }) => applied.push(current.content?.toString() ?? 'gone'));
  return { watcher, applied };
}

const directory = await mkdtemp(join(tmpdir(), 'test-your-controller-'));
const volume = new KubeletVolume(join(directory, 'config'), { swap: 'remove' });
volume.publish({ 'app.yaml': 'one' });
const clock = new FakeClock();
const backend = new ScriptedBackend();
const { watcher, applied } = controller(volume.path('app.yaml'), { clock, backend });
await watcher.start();

// A swap that leaves a gap: a check in a gap of less than 500 ms reports nothing.
for (const step of volume.steps({ 'app.yaml': 'two' })) {
  if (step.name !== 'unlink' || step.path !== volume.path('..data')) continue;
  backend.hint();
  await watcher.idle();
  await clock.advance(499);
  await watcher.idle();
}
backend.hint();
await watcher.idle();
assert.deepEqual(applied, ['one', 'two']);
console.log('a short gap shows nothing but the new content:', applied.join(', '));

// The backend fails, and an update follows while nothing is watched. It is found when the backend is back, at most 50 ms later.
backend.fail(new Error('inotify went away'));
volume.publish({ 'app.yaml': 'three' });
await clock.advance(50);
await watcher.idle();
assert.deepEqual(applied, ['one', 'two', 'three']);
console.log('a dead backend loses nothing:', applied.join(', '));

await watcher.close();
assert.equal(clock.pending, 0);
console.log('nothing is left running:', clock.pending, 'timers,', backend.subscriptions, 'subscriptions');
await rm(directory, { recursive: true });
