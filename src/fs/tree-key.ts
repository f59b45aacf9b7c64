/** Keys of a tree: paths relative to its root, `''` for the root itself. */

/** The path relative to the root; undefined if it is not below the root. */
export function keyBelow(root: string, path: string): string | undefined {
  if (path === root) return '';
  const above = root.endsWith('/') ? root : `${root}/`;
  return path.startsWith(above) ? path.slice(above.length) : undefined;
}

/** The key of the directory that holds the entry. */
export function parentOf(key: string): string {
  return key.slice(0, Math.max(0, key.lastIndexOf('/')));
}

/** A change behind a name that a volume hides is visible in the directory that contains the name. */
export function shownPlace(key: string): string {
  return key.replace(/(^|\/)\.\..*$/, '');
}

/** `a/b/c` → `a`, `a/b`, `a/b/c`. */
export function* placesOnTheWay(key: string): Iterable<string> {
  for (let end = key.indexOf('/'); end >= 0; end = key.indexOf('/', end + 1)) yield key.slice(0, end);
  yield key;
}
