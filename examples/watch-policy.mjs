/**
 * A program whose policy is a key of a mounted ConfigMap: it applies each change once, keeps the last good one, and
 * reports its state on a health endpoint. `node examples/watch-policy.mjs`
 *
 * A temporary directory stands in for the mount, and `KubeletVolume` for kubelet.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { watch } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';

const directory = await mkdtemp(join(tmpdir(), 'watch-policy-'));
const mount = new KubeletVolume(join(directory, 'policy'));
mount.publish({ 'policy.json': '{"allow":["alice"]}' });

let policy = { allow: [] };
const watcher = await watch(mount.path('policy.json'));
watcher.on('degraded', ({ error }) => console.log('polling:', error.message));
watcher.on('unreadable', ({ error }) => console.log('cannot read:', error.message));

const updates = ['{"allow":["alice","bob"]}', '{"allow":', '{"allow":["bob"]}'];
for await (const { current, cause } of watcher) {
  if (current.kind === 'missing') continue; // keep the current policy
  try {
    policy = JSON.parse(String(current.content));
    console.log(`applied (${cause}):`, policy.allow.join(', '));
  } catch {
    console.log(`rejected, still:`, policy.allow.join(', '));
  }
  const next = updates.shift();
  if (next === undefined) break;
  mount.publish({ 'policy.json': next });
}

const { state, changes, restarts } = watcher.status();
console.log('health:', { state, changes, restarts });
await watcher.close();
await rm(directory, { recursive: true });
