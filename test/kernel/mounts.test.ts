/**
 * Mounts: the kernel says nothing of them, so the resync has to find them. Time is fake and does not pass: what is
 * reported without an `advance` was reported because of a native event.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ResilientWatcher, type WatcherWarning } from 'resilient-watcher';
import { FakeClock, KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { inMountNamespace } from '../support/namespace.js';
import { temporaryDirectory } from '../support/temporary-directory.js';
import { fsWith } from '../support/intercepted-fs.js';
import { openScene } from '../support/open-scene.js';
import type { Scene, SceneOptions } from '../support/scene.js';

function mount(...args: string[]): { unmount(): void } {
  execFileSync('mount', args);
  const target = args.at(-1) ?? '';
  let mounted = true;
  const unmount = (): void => {
    if (mounted) execFileSync('umount', [target]);
    mounted = false;
  };
  onTestFinished(unmount);
  return { unmount };
}

/** Its old revisions stay, so that a swap causes events in the directory of the volume only. */
const volumeAt = (directory: string, swap?: 'rename' | 'remove'): KubeletVolume =>
  new KubeletVolume(directory, { swap, keepOldRevisions: true });

const tmpfs = (directory: string): ReturnType<typeof mount> => mount('-t', 'tmpfs', 'tmpfs', directory);
const bind = (source: string, target: string): ReturnType<typeof mount> => mount('--bind', source, target);

/** The next report; the check that led to it has ended, so that what comes now has a cause of its own. */
async function reports(scene: Scene, text: string): Promise<void> {
  await scene.reports(text);
  await scene.watcher.idle();
}

inMountNamespace(import.meta.url, () => {
  describe('a file system that is mounted over the volume and unmounted', () => {
    test('a tmpfs', async () => {
      const clock = new FakeClock();
      const scene = openScene('fs');
      const volume = volumeAt(join(scene.root, 'volume'));
      volume.publish({ key: 'below 1' });
      await scene.watch(volume.path('key'), { clock, resyncIntervalMs: 5_000 });
      await reports(scene, 'below 1');

      const { unmount } = tmpfs(volume.directory);
      volume.publish({ key: 'above 1' });
      await clock.advance(5_000);
      await reports(scene, 'above 1');
      expect(scene.watcher.status().resyncs).toBe(1);
      volume.publish({ key: 'above 2' });
      await reports(scene, 'above 2');

      // A file system that is unmounted causes an event for its watches.
      unmount();
      await reports(scene, 'below 1');
      volume.publish({ key: 'below 2' });
      await reports(scene, 'below 2');
      expect(scene.watcher.status()).toMatchObject({ resyncs: 1, state: 'watching', restarts: 0 });
    });

    test('an empty tmpfs: the key is missing until the tmpfs is unmounted', async () => {
      const clock = new FakeClock();
      const scene = openScene('fs');
      const volume = volumeAt(join(scene.root, 'volume'));
      volume.publish({ key: 'below' });
      // The file that comes back is the old one, as after a write in place.
      const quietPeriod = { missingGraceMs: 500, settleMs: 0 };
      await scene.watch(volume.path('key'), { clock, resyncIntervalMs: 5_000, ...quietPeriod });
      await reports(scene, 'below');
      const { unmount } = tmpfs(volume.directory);
      await clock.advance(5_000);
      await scene.watcher.idle();
      await clock.advance(500);
      await scene.reportsMissing();
      unmount();
      await reports(scene, 'below');
    });

    test('a bind mount of another volume', async () => {
      const clock = new FakeClock();
      const scene = openScene('fs');
      const below = volumeAt(join(scene.root, 'volume'));
      const above = volumeAt(join(scene.root, 'other'));
      below.publish({ key: 'below 1' });
      above.publish({ key: 'above 1' });
      await scene.watch(below.path('key'), { clock, resyncIntervalMs: 5_000 });
      await reports(scene, 'below 1');

      const { unmount } = bind(above.directory, below.directory);
      await clock.advance(5_000);
      await reports(scene, 'above 1');
      above.publish({ key: 'above 2' });
      await reports(scene, 'above 2');
      // Every event of that swap has led to a check.
      await scene.quiet();

      unmount();
      await clock.advance(5_000);
      await reports(scene, 'below 1');
      below.publish({ key: 'below 2' });
      await reports(scene, 'below 2');
      expect(scene.watcher.status()).toMatchObject({ state: 'watching', restarts: 0 });
    });
  });

  describe('a file that is mounted by itself, and written in place where it comes from', () => {
    interface Kind {
      readonly what: string;
      readonly target: string | readonly string[];
      readonly options?: SceneOptions;
      readonly told: (text: string) => string;
    }
    const kinds: readonly Kind[] = [
      { what: 'the file', target: 'app/file', told: (text) => text },
      { what: 'a link to it', target: 'link', told: (text) => text },
      { what: 'a group', target: ['app/file', 'other'], told: (text) => `file=${text} other=other` },
      { what: 'a directory', target: 'app', told: (text) => `file=${text}` },
      { what: 'a directory with a link to it', target: 'links', told: (text) => `file=${text}` },
      { what: 'a tree', target: 'app', options: { recursive: true }, told: (text) => `file=${text}` },
    ];
    test.each(kinds)('$what is told without a resync', async ({ target, options, told }) => {
      const scene = openScene('fs');
      const [source, file] = [scene.at('source'), scene.at('app/file')];
      for (const directory of ['app', 'links']) mkdirSync(scene.at(directory));
      for (const path of [source, file]) writeFileSync(path, 'one');
      writeFileSync(scene.at('other'), 'other');
      symlinkSync(file, scene.at('link'));
      symlinkSync(file, scene.at('links/file'));
      bind(source, file);
      const paths = typeof target === 'string' ? scene.at(target) : target.map((path) => scene.at(path));
      // With a file system of its own, the mount table is read now.
      await scene.watch(paths, { ...options, fs: fsWith({}) });
      await scene.comesTo(told('one'));
      for (const text of ['two', 'three', 'four']) {
        writeFileSync(source, text);
        await scene.comesTo(told(text));
      }
      expect(scene.watcher.status()).toMatchObject({ state: 'watching', restarts: 0 });
    });
  });

  test.each(['rename', 'remove'] as const)(
    'a volume that is a tmpfs, as every Secret is, swapped by %s',
    async (swap) => {
      const clock = new FakeClock();
      const scene = openScene('fs');
      const volume = volumeAt(join(scene.root, 'volume'), swap);
      mkdirSync(volume.directory);
      tmpfs(volume.directory);
      volume.publish({ key: 'v1' });
      await scene.watch(volume.path('key'), { clock });
      await reports(scene, 'v1');
      for (const version of ['v2', 'v3', 'v4']) {
        volume.publish({ key: version });
        await reports(scene, version);
      }
    },
  );

  describe('subPath', () => {
    const mounts: Record<string, (volume: KubeletVolume, root: string) => string> = {
      'one file of a revision'(volume, root) {
        const target = join(root, 'app.yaml');
        writeFileSync(target, '');
        bind(join(volume.directory, volume.revision ?? '', 'conf.d/app.yaml'), target);
        return target;
      },
      'a directory of a revision'(volume, root) {
        const target = join(root, 'conf.d');
        mkdirSync(target);
        bind(join(volume.directory, volume.revision ?? '', 'conf.d'), target);
        return join(target, 'app.yaml');
      },
      'a whole revision'(volume, root) {
        const target = join(root, 'etc');
        mkdirSync(target);
        bind(join(volume.directory, readlinkSync(volume.path('..data'))), target);
        return join(target, 'conf.d/app.yaml');
      },
    };

    test.each(Object.keys(mounts))(
      '%s that is mounted by itself: one warning, and no false change after a swap',
      async (name) => {
        const scene = openScene('fs');
        // Kubelet empties the old revision, and then a directory that is mounted shows no files; a file outlives that.
        const keepOldRevisions = name !== 'one file of a revision';
        const volume = new KubeletVolume(join(scene.root, 'volume'), { keepOldRevisions });
        volume.publish({ 'conf.d/app.yaml': 'v1' });
        const path = mounts[name]?.(volume, scene.root) ?? '';
        const warnings: string[] = [];
        const clock = new FakeClock();
        // Another file system object, whose mount table was not read before the mount.
        const watcher = new ResilientWatcher(path, { clock, fs: fsWith({}) });
        onTestFinished(() => watcher.close());
        const reported: string[] = [];
        const warned = new Promise<WatcherWarning>((resolve) => {
          watcher.on('warning', (warning) => {
            warnings.push(warning.code);
            resolve(warning);
          });
        });
        watcher.on('change', ({ current }) => reported.push(String(current.content)));
        await watcher.start();
        // By then the mount table is read again.
        while (warnings.length === 0) await clock.advance(5_000);
        const warning = await warned;
        expect(warning.message).toContain('subPath');
        expect(watcher.status().warnings).toEqual([warning]);

        volume.publish({ 'conf.d/app.yaml': 'v2' });
        await clock.advance(5_000);
        await watcher.check();
        // Of a directory, the files may be deleted with the revision.
        expect(reported.filter((text) => text !== 'undefined')).toEqual(['v1']);
        await watcher.close();
        expect(warnings).toEqual(['subPath']);
      },
    );

    test('an ordinary volume causes no warning, mounted or not', async () => {
      const root = temporaryDirectory();
      const plain = new KubeletVolume(join(root, 'plain'));
      const mounted = new KubeletVolume(join(root, 'mounted'));
      const bound = new KubeletVolume(join(root, 'bound'));
      mkdirSync(mounted.directory);
      tmpfs(mounted.directory);
      mkdirSync(bound.directory);
      mkdirSync(join(root, 'source'));
      bind(join(root, 'source'), bound.directory);
      for (const volume of [plain, mounted, bound]) {
        volume.publish({ key: 'v1' });
        const watcher = new ResilientWatcher(volume.path('key'));
        const warnings: string[] = [];
        watcher.on('warning', ({ message }) => warnings.push(message));
        await watcher.start();
        volume.publish({ key: 'v2' });
        await watcher.check();
        await watcher.close(); // the mount table was read by now
        expect(warnings).toEqual([]);
      }
    });
  });
});
