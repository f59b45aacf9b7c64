import { insidePath } from '../core/ports/platform-path.js';
import { checkPath } from '../core/options/options.js';

const GLOB_IN_PATH = 'watch the directory, with "recursive" if needed';

/** The path of an entry of a directory. */
export function within(directory: string, entry: string): string {
  return directory === '/' ? `/${entry}` : `${directory}/${entry}`;
}

/** Without trailing slashes: with one, a link would be followed, and a directory would have several paths. */
export function withoutTrailingSlashes(path: string): string {
  // What is no path is refused by its user.
  if (typeof path !== 'string') return path;
  let end = path.length;
  while (end > 1 && path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}

/**
 * Checks a path that a user passed, and returns it as a string.
 * @param advice what to do instead of passing a glob.
 * @throws {TypeError} for something that is not a path, and for a glob.
 */
export function givenPath(name: string, path: string | URL, advice = GLOB_IN_PATH): string {
  const checked = checkPath('ResilientWatcher', name, path);
  // A key of a ConfigMap cannot contain "*", and a path with "*" is probably meant as a glob. For a file name that
  // contains it, use a URL.
  if (typeof path === 'string' && path.includes('*')) {
    throw new TypeError(
      `ResilientWatcher: ${name} ${JSON.stringify(path)} contains "*", and globs are not expanded; ${advice}, or pass pathToFileURL(path) if it is the name of a file`,
    );
  }
  return checked;
}

/** The same path, made absolute now, before a later `chdir`. */
export function absoluteGivenPath(name: string, path: string | URL): string {
  return insidePath(givenPath(name, path));
}
