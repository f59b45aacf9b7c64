import type { ReadLimits, Target } from '../observation.js';
import { absoluteGivenPath } from './given-path.js';
import { GroupTarget } from './group-target.js';
import { PathTarget } from './path-target.js';
import { TreeTarget, type TreeOptions } from './tree-target.js';

/** One path, or the paths of a group of files. */
export type TargetPath = string | URL | readonly (string | URL)[];

/**
 * Creates the target of a `ResilientWatcher`: a path, a tree, or several files.
 * @param tree how the directory is watched recursively, if it is.
 * @throws {TypeError} for something that is not a path, no path at all, or the same one twice.
 */
export function targetAt(
  path: TargetPath,
  limits: ReadLimits,
  tree?: Omit<TreeOptions, keyof ReadLimits>,
): Target {
  if (!isGroup(path)) {
    const absolute = absoluteGivenPath('path', path);
    return tree ? new TreeTarget(absolute, { ...limits, ...tree }) : new PathTarget(absolute, limits);
  }
  if (path.length === 0) throw new TypeError('ResilientWatcher: path must name at least one file, got []');
  const paths = path.map((member, index) => absoluteGivenPath(`path[${index}]`, member));
  if (new Set(paths).size < paths.length) {
    throw new TypeError('ResilientWatcher: path must not name a file twice');
  }
  const keyOf = (member: string | URL, index: number): string =>
    typeof member === 'string' ? member : (paths[index] ?? '');
  return new GroupTarget(
    new Map(path.map((member, index) => [keyOf(member, index), paths[index] ?? ''])),
    limits,
  );
}

/** Whether these are the paths of a group. */
export function isGroup(path: TargetPath): path is readonly (string | URL)[] {
  return Array.isArray(path);
}
