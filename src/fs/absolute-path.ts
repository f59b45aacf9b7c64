import { isAbsolute } from 'node:path';

/**
 * Makes a path absolute now, before a later `chdir`. Not normalized: `..` after a link means the parent of the link's
 * target, which only the file system knows. A leading `./` is removed, because it means nothing.
 */
export function absolutePath(path: string): string {
  return isAbsolute(path) ? path : `${process.cwd()}/${path.replace(/^(?:\.\/+)+(?=.)/, '')}`;
}

/** The path of an entry of a directory. */
export function within(directory: string, entry: string): string {
  return directory === '/' ? `/${entry}` : `${directory}/${entry}`;
}
