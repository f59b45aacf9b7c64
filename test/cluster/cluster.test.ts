/** `npx vitest run --project cluster test/cluster`: thirty updates of a ConfigMap and a Secret by a real kubelet, seen by this library and by others. */
import { expect, test } from 'vitest';

import { ClusterStage } from './cluster.js';
import { CSI_OBSERVER } from './csi.js';
import { isAfterRewrite, isBadUpdate, NUMBERED, OBSERVERS, UPDATES } from './objects.js';
import { clusterSettings } from './settings.js';
import { linesOf, tableOf, tally, type Row } from './tally.js';

const settings = clusterSettings();

test.skipIf(!settings)(
  'every update that kubelet delivers is seen once',
  { timeout: 90 * 60_000 },
  async () => {
    if (!settings) return;
    await using stage = new ClusterStage(settings);
    await stage.create();
    const withCsi = settings.registrar ? [CSI_OBSERVER] : [];
    for (const name of [...OBSERVERS.map((observer) => observer.name), ...withCsi])
      await stage.until(`${name} is ready`, async () => (await stage.log(name)).includes('"ready"'));

    for (let update = 1; update <= UPDATES; update += 1) {
      // What is written again without a difference must not be reported; the next update would show that it was.
      if (isAfterRewrite(update)) await stage.rewrite(update - 1);
      if (update === UPDATES / 2) stage.restartKubelet();
      await stage.publish(update);
      for (const name of ['library-configmap', 'library-secret']) {
        await stage.until(`${name} has seen update ${update}`, async () =>
          linesOf(await stage.log(name)).some(({ sequence }) => sequence === update),
        );
      }
    }

    // The driver asks its provider when what it has is two minutes old.
    for (const name of withCsi) {
      await stage.until(`${name} has seen the last update`, async () =>
        linesOf(await stage.log(name)).some(({ sequence }) => sequence === UPDATES),
      );
      expect(linesOf(await stage.log(name)).filter((line) => line.false)).toEqual([]);
    }

    const logs = new Map<string, string>();
    for (const { name } of OBSERVERS) logs.set(name, await stage.log(name));
    const rows = (['config', 'secret'] as const).flatMap((volume) => {
      const names = NUMBERED.filter((observer) => observer.volume === volume).map(({ name }) => name);
      return tally(new Map(names.map((name) => [name, logs.get(name) ?? ''])));
    });
    console.log(tableOf(rows));

    // Those without this library may die.
    expect((await stage.ended()).filter((name) => !/^(chokidar|fs-watch)/.test(name))).toEqual([]);

    const rowOf = (name: string): Row | undefined => rows.find(({ observer }) => observer === name);
    for (const name of ['library-configmap', 'library-secret']) {
      expect(rowOf(name)).toMatchObject({ seen: UPDATES + 1, missed: 0, false: 0 });
    }
    const bad = Array.from({ length: UPDATES + 1 }, (_, update) => update).filter(isBadUpdate);
    expect(rowOf('config-loader')?.missed).toBe(bad.length);
    expect(logs.get('config-loader')).toContain('"rejected"');
    expect(logs.get('library-subpath')).toContain('"warning":"subPath"');
    expect(logs.get('token-file')).toContain('"token"');
    expect(logs.get('token-refresher')).toContain('"delivered"');
    expect(await stage.log('sidecar')).toContain('acted on ');
  },
);
