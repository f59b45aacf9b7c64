/** Keys of a tree: paths relative to its root, `''` for the root itself. */

/** The key of an entry of a directory. */
export function childOf(key: string, name: string): string {
  return key === '' ? name : `${key}/${name}`;
}

/** The key of the directory that contains an entry. */
export function parentOf(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf('/')));
}

/** The last name of a key. */
export function nameOf(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1);
}
