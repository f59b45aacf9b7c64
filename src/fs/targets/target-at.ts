import { told } from '../../core/ports/platform-path.js';
import { absoluteGivenPath } from '../absolute-path.js';
import type { Target } from '../observation.js';
import type { ReadLimits } from '../read-limits.js';
import { GroupTarget } from './group.js';
import { PathTarget, type TreeTargetOptions } from './path.js';

/** One path, or the paths of a group of files. */
export type TargetPath = string | URL | readonly (string | URL)[];

/**
 * Creates the target of a `ResilientWatcher`: a path, a tree, or several files.
 * @param tree how the directory is watched recursively, if it is.
 * @throws {TypeError} for something that is not a path, for an empty array, and for a path given twice.
 */
export function targetAt(path: TargetPath, limits: ReadLimits, tree?: TreeTargetOptions): Target {
  if (!isGroup(path)) return new PathTarget(absoluteGivenPath('path', path), limits, tree);
  if (path.length === 0) throw new TypeError('ResilientWatcher: path must name at least one file, got []');
  const paths = path.map((member, index) => absoluteGivenPath(`path[${index}]`, member));
  const known = new Set<string>();
  for (const one of paths) {
    if (known.has(one)) throw new TypeError(`ResilientWatcher: path names "${told(one)}" twice`);
    known.add(one);
  }
  const members = path.map((member, index): [string, string] => {
    const absolute = paths[index] ?? '';
    return [typeof member === 'string' ? member : told(absolute), absolute];
  });
  return new GroupTarget(new Map(members), limits);
}

/** Whether these are the paths of a group. */
export function isGroup(path: TargetPath): path is readonly (string | URL)[] {
  return Array.isArray(path);
}
