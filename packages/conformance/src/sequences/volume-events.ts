/** Events in the life of a volume key. */
import fs from 'node:fs';
import { dirname } from 'node:path';

import { inMountNamespace } from '../requirement.js';
import { KEY, slowly, volumeKey, writeFile, type KeyOptions } from '../publishers.js';
import type { Sequence } from '../sequence.js';
import type { Stage } from '../stage.js';
import type { VolumeStep } from '../kubelet.js';

/** `count` updates, each held. */
export const updates =
  (count: number, options?: KeyOptions): Sequence['run'] =>
  async (stage) => {
    const { path, publish } = volumeKey(stage, options);
    await stage.start(path, publish);
    for (let update = 0; update < count; update += 1) await stage.show(publish);
  };

/** `count` updates that may be passed over, `gapMs` apart, then one that is held. */
export const burst =
  (count: number, gapMs: number, options?: KeyOptions): Sequence['run'] =>
  async (stage) => {
    const { path, publish } = volumeKey(stage, options);
    await stage.start(path, publish);
    for (let update = 0; update < count; update += 1) {
      await stage.pass(publish);
      if (gapMs > 0) await stage.pause(gapMs);
    }
    await stage.show(publish);
  };

/** The link `..data` is missing for `gapMs` in each update. */
export const withGap =
  (gapMs: number): Sequence['run'] =>
  async (stage) => {
    const { volume, path, publish } = volumeKey(stage, { swap: 'remove' });
    const publishSlowly = slowly(stage, volume, ({ name, path: changed }) =>
      name === 'unlink' && changed === volume.path('..data') ? gapMs : 0,
    );
    await stage.start(path, publish);
    for (let update = 0; update < 3; update += 1) await stage.show(gapMs > 0 ? publishSlowly : publish);
  };

/** The volume is removed, and created again after a while. */
export const recreated =
  (
    goneMs: number,
    remove: (stage: Stage, directory: string) => void,
    options?: KeyOptions,
  ): Sequence['run'] =>
  async (stage) => {
    const directory = stage.path('pod', 'volumes', 'app');
    const { path, publish } = volumeKey(stage, { ...options, directory });
    await stage.start(path, publish);
    for (let update = 0; update < 2; update += 1) {
      await stage.show(publish);
      remove(stage, directory);
      if (goneMs > 0) await stage.pause(goneMs);
      await stage.show(publish);
    }
  };

export const removeVolume = ({ disk }: Stage, directory: string): void => disk.remove(directory);

export const renameAncestor = (stage: Stage): void =>
  stage.disk.rename(stage.path('pod'), stage.path(stage.content()));

export const missing =
  (...names: readonly string[]): Sequence['run'] =>
  async (stage) => {
    const { path, publish } = volumeKey(stage, { directory: stage.path(...names) });
    stage.launch(path);
    await stage.pause(1_000);
    await stage.show(publish);
    await stage.show(publish);
  };

export async function sameContent(stage: Stage): Promise<void> {
  const { volume, path, publish } = volumeKey(stage);
  await stage.start(path, publish);
  const content = stage.content();
  await stage.show(publish, content);
  for (let other = 0; other < 5; other += 1) {
    volume.publish({ 'other.yaml': String(other), [KEY]: content });
    await stage.pause(50);
  }
  await stage.show(publish);
}

export const backAndForth =
  (isHeld: boolean): Sequence['run'] =>
  async (stage) => {
    const { path, publish } = volumeKey(stage);
    await stage.start(path, publish);
    const [a, b] = [stage.content(), stage.content()];
    await stage.show(publish, a);
    for (let round = 0; round < 3; round += 1) {
      await (isHeld ? stage.show(publish, b) : stage.pass(publish, b));
      await stage.show(publish, a);
    }
    await stage.show(publish);
  };

export async function keyComesAndGoes(stage: Stage): Promise<void> {
  const { volume, path, publish } = volumeKey(stage);
  await stage.start(path, publish);
  for (let update = 0; update < 2; update += 1) {
    volume.publish({ 'other.yaml': 'other' });
    await stage.pause(300);
    await stage.show(publish);
  }
}

export const keyIsAdded =
  (links: 'after' | 'before'): Sequence['run'] =>
  async (stage) => {
    const { volume, path, publish } = volumeKey(stage, { links });
    volume.publish({ 'other.yaml': 'other' });
    stage.launch(path);
    await stage.pause(1_000);
    await stage.show(slowly(stage, volume, ({ name }) => (name === 'symlink' ? 100 : 0)));
    await stage.show(publish);
  };

export async function changesWhileStarting(stage: Stage): Promise<void> {
  const { path, publish } = volumeKey(stage);
  await stage.pass(publish);
  stage.launch(path);
  for (let update = 0; update < 60; update += 1) {
    await stage.pass(publish);
    await stage.pause(20);
  }
  await stage.show(publish);
  await stage.show(publish);
}

/** Kubelet is killed after its first step of this name, and begins again. */
export const crash =
  (last: VolumeStep['name']): Sequence['run'] =>
  async (stage) => {
    const { volume, path, publish } = volumeKey(stage);
    await stage.start(path, publish);
    for (let update = 0; update < 3; update += 1) {
      const half = stage.content();
      for (const step of volume.steps({ 'other.yaml': 'other', [KEY]: half })) if (step.name === last) break;
      await stage.pause(100);
      await stage.show(publish);
    }
  };

export async function subPath(stage: Stage): Promise<void> {
  const { path, publish } = volumeKey(stage);
  const target = stage.path('mounted.yaml');
  const sameFile = stage.path('same-file');
  const prefix = inMountNamespace('mount --bind "$1" "$2"; shift 2; exec "$@"', path, target);
  const publishFirst = (content: string): void => {
    void publish(content);
    stage.disk.writeFile(target, '');
    stage.disk.link(fs.realpathSync(path), sameFile);
  };
  await stage.start(target, publishFirst, { prefix, witnessPath: sameFile });
  for (let update = 0; update < 3; update += 1) {
    await publish(stage.content());
    await stage.pause(300);
  }
}

export async function neighborChanges(stage: Stage): Promise<void> {
  const { path, publish } = volumeKey(stage);
  const neighbor = volumeKey(stage, { directory: stage.path('neighbor') });
  await stage.start(path, publish);
  for (let update = 0; update < 3; update += 1) {
    await neighbor.publish(stage.content());
    await stage.show(publish);
  }
}

/** kubelet's calls, with a pause after each. */
export async function slowKubelet(stage: Stage): Promise<void> {
  const { volume, path, publish } = volumeKey(stage);
  await stage.start(path, publish);
  for (let update = 0; update < 2; update += 1) await stage.show(slowly(stage, volume, () => 30));
}

export async function becomesVolume(stage: Stage): Promise<void> {
  const { path, publish } = volumeKey(stage);
  stage.disk.mkdir(dirname(path));
  await stage.start(path, writeFile(stage.disk, path));
  stage.disk.unlink(path);
  await stage.show(publish);
  await stage.show(publish);
}

export const files = (count: number): KeyOptions => ({
  rest: Object.fromEntries(Array.from({ length: count }, (_, file) => [`file-${file}.yaml`, 'rest'])),
});
