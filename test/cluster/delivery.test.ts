/** `npm run test:cluster`: how long a ConfigMap or Secret takes to reach a listener in ten pods, with `sync-pods` and without. */
import { setTimeout as sleep } from 'node:timers/promises';

import { expect, test } from 'vitest';

import { startCli, type Program } from '../support/program.js';
import { DeliveryStage } from './delivery.js';
import { UPDATES } from './objects.js';
import { clusterSettings } from './settings.js';

const settings = clusterSettings();

/** Updates that kubelet delivers alone; each takes up to a minute and a half. */
const ALONE = 3;

async function startSyncPods(namespace: string): Promise<Program> {
  const kubeconfig = process.env['KUBECONFIG'] ?? '';
  const program = startCli([
    'sync-pods',
    `--namespace=${namespace}`,
    '--secrets',
    `--kubeconfig=${kubeconfig}`,
    '--json',
  ]);
  await program.until(/"listed"/);
  return program;
}

async function killed(program: Program): Promise<void> {
  program.child.kill('SIGKILL');
  await program.exit;
}

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

  let first = await startSyncPods(stage.namespace);
  let second: Program | undefined;
  while (update < UPDATES) {
    if (update === 10) {
      await killed(first);
      await publish('published while sync-pods was away');
      first = await startSyncPods(stage.namespace);
    } else if (update < 20) await publish('sync-pods');
    else {
      second ??= await startSyncPods(stage.namespace);
      if (update === 25) await killed(first);
      await publish('two replicas, one killed halfway');
    }
    await stage.delivered();
  }
  const programs = [first, second].filter((program) => program !== undefined);
  for (const program of programs) await killed(program);

  while (update < UPDATES + ALONE) {
    await publish('kubelet alone');
    await stage.delivered();
  }
  console.log(stage.table());
  for (const { stdout, stderr } of programs)
    expect(`${stdout}${stderr}`).not.toMatch(/"(?:retry|behind|error)"/);
});
