/** `npx vitest run --project cluster test/cluster`: how long a ConfigMap or Secret takes to reach a listener in ten pods, with `sync-pods` and without. */
import { setTimeout as sleep } from 'node:timers/promises';

import { expect, test } from 'vitest';

import { DeliveryStage } from './delivery.js';
import { UPDATES } from './objects.js';
import { clusterSettings } from './settings.js';
import { SyncPods } from './sync-pods.js';

const settings = clusterSettings();

/** Updates that kubelet delivers alone; each takes up to a minute and a half. */
const ALONE = 3;

test.skipIf(!settings)('sync-pods delivers each update to each pod', { timeout: 60 * 60_000 }, async () => {
  if (!settings) return;
  await using stage = new DeliveryStage(settings);
  await stage.create();

  let update = 0;
  const publish = async (under: string): Promise<void> => {
    update += 1;
    // Other phases of kubelet's period, and of the patches that repeat those of the update before.
    await sleep(Math.random() * 5_000);
    await stage.publish(update, under);
  };

  await using syncPods = new SyncPods(settings);
  await syncPods.create(stage.namespace);
  while (update < UPDATES) {
    if (update === 10) {
      await syncPods.scale(0);
      await publish('published while sync-pods was away');
      await syncPods.scale(1);
    } else if (update < 20) {
      await publish('sync-pods');
    } else {
      if (update === 20) await syncPods.scale(2);
      if (update === 25) await syncPods.kill();
      await publish('two replicas, one killed halfway');
    }
    await stage.delivered();
  }
  const log = await syncPods.log();
  await syncPods.scale(0);

  while (update < UPDATES + ALONE) {
    await publish('kubelet alone');
    await stage.delivered();
  }
  console.log(stage.table());
  expect(log).toContain('"event":"listed"');
  expect(log).not.toMatch(/"event":"(?:retry|behind|error)"/);
});
