/** Publishers: the ways in which a file gets new contents. */
import { dirname, join } from 'node:path';

import type { Disk } from './disk.js';
import { KubeletVolume, type KubeletOptions, type VolumeFile, type VolumeStep } from './kubelet.js';
import type { Publish, Stage } from './stage.js';

/** The watched key, in volumes that may have other keys. */
export const KEY = 'app.yaml';

/** A volume of a stage, and how its key is published. */
export interface VolumeKey {
  readonly volume: KubeletVolume;
  /** The path of the key. */
  readonly path: string;
  readonly publish: Publish;
}

/** Options of {@link VolumeKey}. */
export interface KeyOptions extends KubeletOptions {
  readonly key?: string;
  readonly mode?: number;
  /** The other files of the volume. */
  readonly rest?: Readonly<Record<string, VolumeFile>>;
  /** The directory of the volume. Default: `volume` in the directory of the stage. */
  readonly directory?: string;
}

/** A ConfigMap or Secret volume, not yet published. */
export function volumeKey(stage: Stage, options: KeyOptions = {}): VolumeKey {
  const {
    key = KEY,
    mode = 0o644,
    rest = { 'other.yaml': 'other' },
    directory = stage.path('volume'),
    ...kubelet
  } = options;
  const volume = new KubeletVolume(stage.disk, directory, kubelet);
  const publish: Publish = (data) => volume.publish({ ...rest, [key]: { data, mode } });
  return { volume, path: volume.path(key), publish };
}

/** Publishes one system call at a time, with the pauses that `pauseMs` gives. */
export function slowly(stage: Stage, volume: KubeletVolume, pauseMs: (step: VolumeStep) => number): Publish {
  return async (content) => {
    for (const step of volume.steps({ 'other.yaml': 'other', [KEY]: content })) {
      const ms = pauseMs(step);
      if (ms > 0) await stage.pause(ms);
    }
  };
}

/** Replaces a file by renaming another over it, as editors and `atomicWriteFile` do. */
export const renameOver =
  (disk: Disk, path: string): Publish =>
  (content) => {
    const temporary = join(dirname(path), '.next');
    disk.writeFile(temporary, content);
    disk.rename(temporary, path);
  };

/** Creates or overwrites a file in one call. Only for files that do not exist or that nobody reads. */
export const writeFile =
  (disk: Disk, path: string): Publish =>
  (content) =>
    disk.writeFile(path, content);

/** Truncates the file, writes it in `parts`, `gapMs` apart, and closes it, as `>` in a shell does; then it is held. */
export async function showInPlace(
  stage: Stage,
  path: string,
  { parts = 1, gapMs = 0 }: { readonly parts?: number; readonly gapMs?: number } = {},
): Promise<void> {
  const content = stage.content();
  const length = Math.ceil(content.length / parts);
  stage.part('');
  const descriptor = stage.disk.open(path);
  for (let part = 1; part < parts; part += 1) {
    stage.part(content.slice(0, part * length));
    stage.disk.write(descriptor, content.slice((part - 1) * length, part * length));
    await stage.pause(gapMs);
  }
  await stage.show(() => {
    // A program may wait for the end of the writer, so nothing is held before it.
    stage.disk.write(descriptor, content.slice((parts - 1) * length));
    stage.disk.close(descriptor);
  }, content);
}

/** Points a link to `target`: `rename` replaces the link, `remove` removes it first (`ln -sfn`). */
export function turnLink(disk: Disk, path: string, target: string, how: 'rename' | 'remove'): void {
  if (how === 'rename') {
    disk.symlink(target, `${path}.next`);
    disk.rename(`${path}.next`, path);
  } else {
    disk.remove(path);
    disk.symlink(target, path);
  }
}
