import { checkPath } from '../core/options.js';
import { absolutePath } from './absolute-path.js';

const GLOB_IN_PATH = 'watch the directory, with "recursive" if needed';

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

/** The same path, made absolute: a relative path is resolved against the working directory now. */
export function absoluteGivenPath(name: string, path: string | URL): string {
  return absolutePath(givenPath(name, path));
}
