import { isAbsolute } from 'node:path';

/**
 * The same path after a `chdir`. Not normalized: `..` after a link means the directory above its target, which only
 * the file system knows.
 */
export function absolutePath(path: string): string {
  return isAbsolute(path) ? path : `${process.cwd()}/${path}`;
}

/** The path of an entry of a directory. */
export function within(directory: string, entry: string): string {
  return directory === '/' ? `/${entry}` : `${directory}/${entry}`;
}
