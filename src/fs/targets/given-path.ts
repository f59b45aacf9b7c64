import { checkPath } from '../../core/options.js';
import { absolutePath } from '../absolute-path.js';

const GLOB_IN_PATH = 'watch the directory, with "recursive" if need be';

/**
 * The path as a string.
 * @param advice what to do instead of giving a glob.
 * @throws {TypeError} for something that is not a path, and for a glob.
 */
export function givenPath(name: string, path: string | URL, advice = GLOB_IN_PATH): string {
  const checked = checkPath('ResilientWatcher', name, path);
  // A key of a ConfigMap cannot contain it, and in a path it is probably meant as a glob. For a file name with an
  // asterisk there are URLs.
  if (typeof path === 'string' && path.includes('*')) {
    throw new TypeError(
      `ResilientWatcher: ${name} ${JSON.stringify(path)} contains "*", and globs are not expanded; ${advice}, or pass pathToFileURL(path) if that is the name of a file`,
    );
  }
  return checked;
}

/** The same path, absolute: a relative one is resolved against the working directory now. */
export function absoluteGivenPath(name: string, path: string | URL): string {
  return absolutePath(givenPath(name, path));
}
