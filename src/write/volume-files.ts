/** The files to be published in a volume, as they are given and as they are written. */

import { modeOption } from '../core/options/mode.js';
import { nodeUtil } from '../core/ports/builtins.js';
import { isPlainObject, matching, resolveOptions } from '../core/options/options.js';
import { cleanKeys } from '../fs/volume-layout.js';
import type { Owner } from './file-attributes.js';
import { SHARED_OPTIONS } from './write-options.js';
import { isChunk, toBytes, type WriteChunk } from './write-source.js';

/** A file of a volume: its content, or the content with a mode and owner of its own. */
export type VolumeEntry =
  | WriteChunk
  | {
      readonly data: WriteChunk;
      readonly mode?: number | undefined;
      readonly owner?: Owner | undefined;
    };

/** Files by key (`app.yaml`, `conf.d/app.yaml`): an object, or a `Map` such as `read()` returns. */
export type VolumeEntries = Readonly<Record<string, VolumeEntry>> | ReadonlyMap<string, VolumeEntry>;

/** A file to be written. */
export interface VolumeFile {
  readonly bytes: Uint8Array;
  readonly mode: number;
  readonly owner: Owner | undefined;
}

/** Files by key; a key is a clean relative path. */
export type VolumeFiles = ReadonlyMap<string, VolumeFile>;

/** Mode and owner of files that have none of their own. */
interface Defaults {
  readonly mode: number;
  readonly owner: Owner | undefined;
}

/**
 * Checks what is to be published.
 * @throws {TypeError | RangeError} for anything but a plain object or a `Map`, an invalid key, or an invalid value,
 * which is not shown.
 */
export function checkFiles(owner: string, given: unknown, defaults: Defaults): VolumeFiles {
  const entries = entriesOf(given);
  if (!entries) throw new TypeError(`${owner}: files must be a plain object or a Map of contents by key`);
  const keys = cleanKeys(
    owner,
    entries.map(([key]) => key),
  );
  return new Map(
    keys.map((key, index) => [
      key,
      checkFile(`${owner}: key ${JSON.stringify(key)}`, entries[index]?.[1], defaults),
    ]),
  );
}

/** Undefined for anything else, which could pass for an empty set: an array, a `Set`, an instance of a class. */
function entriesOf(given: unknown): [string, unknown][] | undefined {
  if (nodeUtil.types.isMap(given)) {
    const entries = [...given] as [unknown, unknown][];
    return entries.every(([key]) => typeof key === 'string') ? (entries as [string, unknown][]) : undefined;
  }
  return isPlainObject(given) ? Object.entries(given) : undefined;
}

const CONTENT = 'a string, a Uint8Array, or { data } with one of them';
const PROPERTIES = {
  data: matching<WriteChunk>('', CONTENT, isChunk),
  mode: modeOption<undefined>(undefined),
  owner: SHARED_OPTIONS.owner,
};

function checkFile(what: string, entry: unknown, defaults: Defaults): VolumeFile {
  const given = isChunk(entry) ? { data: entry } : (Object(entry) as { readonly data?: unknown });
  // The message does not show the value: it may be a secret.
  if (!isChunk(given.data)) throw new TypeError(`${what} must hold ${CONTENT}`);
  // A misspelled `mode` would publish a secret to everybody.
  const { mode = defaults.mode, owner = defaults.owner } = resolveOptions(
    what,
    given,
    PROPERTIES,
    'property',
  );
  return { bytes: toBytes(given.data), mode, owner };
}
