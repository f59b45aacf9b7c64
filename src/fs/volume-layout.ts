/**
 * The layout of a volume, as written by kubelet's AtomicWriter (`pkg/volume/util/atomic_writer.go`):
 *
 *     app.yaml -> ..data/app.yaml          one link for the first element of each key
 *     ..data -> ..2006_01_02_15_04_05.123456789
 *     ..2006_01_02_15_04_05.123456789/     a revision: the files themselves
 */
import { isoTime } from '../core/ports/clock.js';
import type { Random } from '../core/ports/random.js';

/** The link to the published revision. */
export const DATA_LINK = '..data';

/** kubelet's name of the next `..data` until the swap; it remains if kubelet dies at that moment. */
export const KUBELET_PENDING_LINK = '..data_tmp';

/** kubelet's limits (`maxFileNameLength`, `maxPathLength`); Linux's NAME_MAX and PATH_MAX. */
const LONGEST_ELEMENT_BYTES = 255;
const LONGEST_KEY_BYTES = 4096;

/** Nine digits, as Go's `os.MkdirTemp` usually chooses them. */
const RANDOM_DIGITS = 1_000_000_000;

const REVISION_NAME = String.raw`\.\.\d{4}(?:_\d\d){5}\.\d+`;

const REVISION = new RegExp(`^${REVISION_NAME}$`);

/** A new name for a revision; `now` is epoch ms. */
export function revisionName(now: number, random: Random): string {
  const second = isoTime(now).slice(0, 19).replace(/\D/g, '_');
  return `..${second}.${Math.floor(random() * RANDOM_DIGITS)}`;
}

/** Whether an entry of a volume is a revision. */
export function isRevisionName(name: string): boolean {
  return REVISION.test(name);
}

/** Whether an entry of a volume is for its users; names of other entries begin with two dots. */
export function isUserVisible(name: string): boolean {
  return !name.startsWith('..');
}

/** Whether the target of `..data` is an entry of the volume, as kubelet makes it. */
export function isEntryName(target: string): boolean {
  return !target.includes('/') && target !== '.' && target !== '..' && target !== '';
}

/** The target of the link with this user-visible name. */
export function userLinkTarget(name: string): string {
  return `${DATA_LINK}/${name}`;
}

/** The first element of a key: the name that users see in the volume. */
export function topOf(key: string): string {
  return key.split('/', 1).join();
}

/**
 * Converts keys to paths in a revision, cleaned as by kubelet (`a//b/./c` is `a/b/c`).
 * @throws {TypeError} for a key that kubelet refuses, two that mean the same, or one below another.
 * @throws {RangeError} for a key that is too long.
 */
export function cleanKeys(owner: string, keys: readonly string[]): string[] {
  const cleaned = keys.map((key) => cleanKey(owner, key));
  const all = new Set<string>();
  for (const key of cleaned) {
    if (all.has(key)) throw new TypeError(`${owner}: key ${JSON.stringify(key)} is given twice`);
    all.add(key);
  }
  for (const key of cleaned) {
    for (let end = key.indexOf('/'); end >= 0; end = key.indexOf('/', end + 1)) {
      const above = key.slice(0, end);
      if (!all.has(above)) continue;
      const [file, inside] = [JSON.stringify(above), JSON.stringify(key)];
      throw new TypeError(`${owner}: key ${file} cannot be a file and the directory of ${inside}`);
    }
  }
  return cleaned;
}

function cleanKey(owner: string, key: string): string {
  const refuse = (why: string): TypeError =>
    new TypeError(`${owner}: key ${JSON.stringify(key.slice(0, 80))} ${why}`);
  if (key.startsWith('/')) throw refuse('must be a relative path');
  if (key.includes('\0')) throw refuse('must not contain a NUL byte');
  const elements = key.split('/').filter((element) => element !== '' && element !== '.');
  const [first] = elements;
  if (first === undefined) throw refuse('must name a file');
  if (elements.includes('..')) throw refuse('must not contain ".."');
  if (!isUserVisible(first)) throw refuse('must not begin with ".."; such names belong to the volume itself');
  if (elements.some((element) => Buffer.byteLength(element) > LONGEST_ELEMENT_BYTES)) {
    throw new RangeError(refuse(`must have elements of at most ${LONGEST_ELEMENT_BYTES} bytes`).message);
  }
  if (Buffer.byteLength(key) > LONGEST_KEY_BYTES) {
    throw new RangeError(refuse(`must be at most ${LONGEST_KEY_BYTES} bytes long`).message);
  }
  return elements.join('/');
}
