import { isMap } from 'node:util/types';

import { isPlainObject } from '../core/options.js';

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

/** The limits of kubelet's payload check, bytes; they are Linux's NAME_MAX and PATH_MAX. */
const LONGEST_NAME = 255;
const LONGEST_PATH = 4096;

function isContents(value: unknown): value is string | Uint8Array {
  return typeof value === 'string' || value instanceof Uint8Array;
}

/**
 * The files of an object or a Map, ready to be written.
 * @throws {TypeError} for anything else, which would look like an empty set; and as `checkedFile` does.
 */
export function checkedFiles(files: VolumeFiles): CheckedFile[] {
  if (!isMap(files) && !isPlainObject(files)) {
    throw new TypeError('KubeletVolume: the files must be a plain object or a Map, by key');
  }
  const entries: Iterable<[string, VolumeFile]> = isMap(files) ? files : Object.entries(files);
  return [...entries].map(([key, file]) => checkedFile(key, file));
}

/**
 * Kubelet's `validatePath` and `filepath.Clean`, then the contents as bytes, copied.
 * @throws {TypeError} for a key that kubelet would refuse or a value that is not a file.
 */
function checkedFile(key: string, file: VolumeFile): CheckedFile {
  const wrong = (why: string): TypeError => new TypeError(`KubeletVolume: key '${key}' ${why}`);
  const names = key.split('/').filter((name) => name !== '' && name !== '.');
  const [first] = names;
  if (key.startsWith('/')) throw wrong('must be a relative path');
  if (first === undefined) throw wrong('must name a file');
  if (key.includes('\0')) throw wrong('must not contain a NUL byte');
  if (names.includes('..')) throw wrong("must not contain '..'");
  if (first.startsWith('..')) throw wrong("must not start with '..'");
  if (names.some((name) => Buffer.byteLength(name) > LONGEST_NAME)) {
    throw wrong(`must have names of at most ${LONGEST_NAME} bytes`);
  }
  if (Buffer.byteLength(key) > LONGEST_PATH) throw wrong(`must be at most ${LONGEST_PATH} bytes`);

  // The value is not shown: it may be a secret.
  if (!isContents(file) && !isContents((file as Partial<typeof file> | null | undefined)?.data)) {
    throw wrong('must contain a string or a Uint8Array');
  }
  const { data, mode = 0o644 } = isContents(file) ? { data: file } : file;
  if (!Number.isInteger(mode) || mode < 0 || mode > 0o7777) throw wrong('must have a mode from 0 to 0o7777');
  return { key: names.join('/'), data: Buffer.from(data as Uint8Array), mode };
}
