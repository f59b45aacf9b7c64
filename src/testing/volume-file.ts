import { isMap } from 'node:util/types';

import { aMode, isMode } from '../core/options/mode.js';
import { isPlainObject } from '../core/options/options.js';
import { cleanKeys } from '../fs/volume-layout.js';

/** A file of a volume: its contents, or its contents and its mode (default `0o644`). Strings are UTF-8. */
export type VolumeFile =
  string | Uint8Array | { readonly data: string | Uint8Array; readonly mode?: number | undefined };

/** The contents of a volume: key (a relative path such as `app.yaml` or `conf.d/app.yaml`) to file. */
export type VolumeFiles = Readonly<Record<string, VolumeFile>> | ReadonlyMap<string, VolumeFile>;

/** A file ready to be written. */
export interface CheckedFile {
  readonly key: string;
  readonly data: Uint8Array;
  readonly mode: number;
}

function isContents(value: unknown): value is string | Uint8Array {
  return typeof value === 'string' || value instanceof Uint8Array;
}

/**
 * The files of an object or a Map, ready to be written: clean keys, contents copied as bytes.
 * @throws {TypeError | RangeError} for anything else, which would look like an empty set; for a key that kubelet would
 * refuse, or a value that is not a file.
 */
export function checkedFiles(files: VolumeFiles): CheckedFile[] {
  if (!isMap(files) && !isPlainObject(files)) {
    throw new TypeError('KubeletVolume: the files must be a plain object or a Map, by key');
  }
  const entries: (readonly [string, VolumeFile])[] = [...(isMap(files) ? files : Object.entries(files))];
  const keys = entries.map(([key]) => key);
  return cleanKeys('KubeletVolume', keys).map((key, index) => checkedFile(key, entries[index]?.[1]));
}

function checkedFile(key: string, file: VolumeFile | undefined): CheckedFile {
  const wrong = (why: string): TypeError =>
    new TypeError(`KubeletVolume: key ${JSON.stringify(key)} must have ${why}`);
  const { data, mode = 0o644 } = isContents(file) ? { data: file } : (Object(file) as Partial<CheckedFile>);
  // The value is not shown: it may be a secret.
  if (!isContents(data)) throw wrong('a string or a Uint8Array');
  if (!isMode(mode)) throw wrong(`a mode that is ${aMode(mode)}`);
  return { key, data: Buffer.from(data as Uint8Array), mode };
}
