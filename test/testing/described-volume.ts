import fs from 'node:fs';
import { join, relative } from 'node:path';

import {
  FakeClock,
  KubeletVolume,
  type KubeletVolumeOptions,
  type VolumeStep,
} from 'resilient-watcher/testing';

/** A volume whose revisions are called `@1`, `@2`... in {@link described}. */
export function volumeAt(directory: string, options: KubeletVolumeOptions = {}): KubeletVolume {
  let digits = 0;
  const random = (): number => (digits += 1) / 1e9;
  return new KubeletVolume(directory, { clock: new FakeClock(), random, ...options });
}

const short = (text: string): string => text.replaceAll('..2024_01_01_00_00_00.', '@');

export function described(volume: KubeletVolume, steps: Iterable<VolumeStep>): string[] {
  return [...steps].map(({ name, path }) => short(`${name} ${relative(volume.directory, path) || '.'}`));
}

/** Every regular file below `directory`, links followed, entries kubelet hides left out. */
export function read(directory: string, prefix = ''): Record<string, string> {
  const files: Record<string, string> = {};
  for (const name of fs.readdirSync(directory)) {
    if (prefix === '' && name.startsWith('..')) continue;
    const path = join(directory, name);
    const stat = fs.statSync(path, { throwIfNoEntry: false });
    if (stat?.isDirectory()) Object.assign(files, read(path, `${prefix}${name}/`));
    else if (stat) files[`${prefix}${name}`] = fs.readFileSync(path, 'utf8');
  }
  return files;
}

/** What a reader finds who resolves `..data` first; undefined when there is none. */
export function readRevision(volume: KubeletVolume): Record<string, string> | undefined {
  const { revision } = volume;
  return revision === undefined ? undefined : read(volume.path(revision));
}

export const names = (directory: string): string[] => fs.readdirSync(directory).sort();

export const hidden = (volume: KubeletVolume): string[] =>
  names(volume.directory).filter((name) => name.startsWith('..'));

export const file = (path: string): string[] => [`open ${path}`, `write ${path}`, `chmod ${path}`];

export const revision = (name: string): string[] => [`mkdir ${name}`, `chmod ${name}`];

export const renameSwap = ['symlink ..data_tmp', 'rename ..data'];

export const removeSwap = ['symlink ..data_tmp', 'unlink ..data', 'symlink ..data', 'unlink ..data_tmp'];
