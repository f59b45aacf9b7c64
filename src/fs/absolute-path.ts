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

/** Without trailing slashes: with one, a link would be followed, and a directory would have several paths. */
export function withoutTrailingSlashes(path: string): string {
  // What is no path is refused by its user.
  if (typeof path !== 'string') return path;
  let end = path.length;
  while (end > 1 && path[end - 1] === '/') end -= 1;
  return path.slice(0, end);
}
