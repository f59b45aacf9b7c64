/** Publishers: the ways in which a file gets new contents. */
import fs from 'node:fs';
import { dirname, join } from 'node:path';

import { KubeletVolume, type KubeletVolumeOptions } from '../testing/kubelet-volume.js';
import type { VolumeFile } from '../testing/volume-file.js';
import type { VolumeStep } from '../testing/volume-steps.js';
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
export interface KeyOptions extends KubeletVolumeOptions {
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
  const volume = new KubeletVolume(directory, kubelet);
  const publish: Publish = (data) => void volume.publish({ ...rest, [key]: { data, mode } });
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
  (path: string): Publish =>
  (content) => {
    const temporary = join(dirname(path), '.next');
    fs.writeFileSync(temporary, content);
    fs.renameSync(temporary, path);
  };

/** Creates or overwrites a file in one call. Only for files that do not exist or that nobody reads. */
export const writeFile =
  (path: string): Publish =>
  (content) =>
    fs.writeFileSync(path, content);

/** Truncates the file and writes it in `parts`, `gapMs` apart, as `>` in a shell does; the complete file is held. */
export async function showInPlace(
  stage: Stage,
  path: string,
  { parts = 1, gapMs = 0 }: { readonly parts?: number; readonly gapMs?: number } = {},
): Promise<void> {
  const content = stage.content();
  const length = Math.ceil(content.length / parts);
  stage.part('');
  const descriptor = fs.openSync(path, 'w');
  try {
    for (let part = 1; part < parts; part += 1) {
      stage.part(content.slice(0, part * length));
      fs.writeSync(descriptor, content.slice((part - 1) * length, part * length));
      await stage.pause(gapMs);
    }
    const rest = content.slice((parts - 1) * length);
    await stage.show(() => void fs.writeSync(descriptor, rest), content);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Points a link to `target`: `rename` replaces the link, `remove` removes it first (`ln -sfn`). */
export function turnLink(path: string, target: string, how: 'rename' | 'remove'): void {
  if (how === 'rename') {
    fs.symlinkSync(target, `${path}.next`);
    fs.renameSync(`${path}.next`, path);
  } else {
    fs.rmSync(path, { force: true });
    fs.symlinkSync(target, path);
  }
}
