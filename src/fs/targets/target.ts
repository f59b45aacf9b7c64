import { absolutePath } from '../absolute-path.js';
import { checkPath } from '../../core/options.js';
import type { Target } from '../observation.js';
import { GroupTarget } from './group-target.js';
import { PathTarget } from './path-target.js';
import { TreeTarget, type TreeOptions } from './tree-target.js';

/**
 * What a `ResilientWatcher` is to look at: a tree, a path, or several files.
 * @throws {TypeError} for an empty path, a NUL byte, no path at all, or the same one twice.
 */
export function targetAt(
  path: string | readonly string[],
  options: TreeOptions & { readonly recursive: boolean },
): Target {
  const check = (name: string, value: unknown): string =>
    absolutePath(checkPath('ResilientWatcher', name, value));
  if (options.recursive) return new TreeTarget(check('path', path), options);
  if (!Array.isArray(path)) return new PathTarget(check('path', path), options);
  if (path.length === 0) throw new TypeError('ResilientWatcher: path must name at least one file, got []');
  const paths = new Map(
    path.map((member: unknown, index) => [member as string, check(`path[${index}]`, member)]),
  );
  if (new Set(paths.values()).size < path.length) {
    throw new TypeError('ResilientWatcher: path must not name a file twice');
  }
  return new GroupTarget(paths, options);
}
