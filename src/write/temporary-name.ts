/**
 * Names of what is unfinished:
 *
 *     .rw-<random>.tmp          a file
 *     ..data_tmp-<random>.tmp   the next `..data` link of a volume, or the next link of a key
 *
 * Their length does not depend on the name of the target, which may itself be as long as a name can be.
 */
const PATTERN = /^(?:\.rw-|\.\.data_tmp-)[0-9a-f-]{36}\.tmp$/;

/** The prefixes by what is unfinished. */
const PREFIXES = { file: '.rw-', link: '..data_tmp-' };

/** A new name for an unfinished file or link. Nobody can guess it. */
export function temporaryName(kind: keyof typeof PREFIXES): string {
  return `${PREFIXES[kind]}${crypto.randomUUID()}.tmp`;
}

/** Whether a directory entry is an unfinished file or link of this library. Watchers should ignore it. */
export function isTemporaryName(name: string): boolean {
  return PATTERN.test(name);
}

/** Whether a name is that of an unfinished file, or of an unfinished link. */
export function isNameOf(kind: keyof typeof PREFIXES, name: string): boolean {
  return name.startsWith(PREFIXES[kind]) && PATTERN.test(name);
}
