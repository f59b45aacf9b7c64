/** What a target shows at this instant, found independently of the library: keys and contents. */
import type { Fs } from './actors/calls.js';

export type View = Map<string, string>;

const bytes = Buffer.alloc(256);

/** The text of the file that a path leads to; undefined if there is none. */
export function fileText(fs: Fs, path: string): string | undefined {
  let fd: number;
  try {
    if (!fs.statSync(path, { bigint: true }).isFile()) return undefined;
    fd = fs.openSync(path, 0);
  } catch {
    return undefined;
  }
  const length = fs.readSync(fd, bytes, 0, bytes.length, 0);
  fs.closeSync(fd);
  return bytes.toString('utf8', 0, length);
}

/** The files of a group, by the keys that they are reported under. */
export function group(fs: Fs, paths: readonly string[]): View {
  return new Map(
    paths.flatMap((path) => {
      const text = fileText(fs, path);
      return text === undefined ? [] : [[path, text] as const];
    }),
  );
}

/** The files in a directory, or with everything below it. A volume shows only its keys. */
export function directory(fs: Fs, path: string, isRecursive: boolean): View {
  const view: View = new Map();
  const root = names(fs, path).includes('..data') ? `${path}/..data` : path;
  collect(fs, root, '', isRecursive || root !== path, view);
  return view;
}

/** A directory inside a volume, with everything below it. */
export function inside(fs: Fs, path: string): View {
  const view: View = new Map();
  collect(fs, path, '', true, view);
  return view;
}

function collect(fs: Fs, directory: string, prefix: string, isRecursive: boolean, view: View): void {
  for (const name of names(fs, directory)) {
    if (name.startsWith('..')) continue;
    const path = `${directory}/${name}`;
    const text = fileText(fs, path);
    if (text !== undefined) view.set(`${prefix}${name}`, text);
    else if (isRecursive && isDirectory(fs, path)) {
      const inner = names(fs, path).includes('..data') ? `${path}/..data` : path;
      collect(fs, inner, `${prefix}${name}/`, true, view);
    }
  }
}

function names(fs: Fs, path: string): string[] {
  try {
    return fs.readdirSync(path, { withFileTypes: true }).map(({ name }) => name);
  } catch {
    return [];
  }
}

function isDirectory(fs: Fs, path: string): boolean {
  return fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })?.isDirectory() === true;
}

/** The parts of a view that must be reported as a whole, as text. */
export function byUnit(
  view: ReadonlyMap<string, string>,
  unitOf: (key: string) => string,
): Map<string, string> {
  const units = new Map<string, string>();
  for (const key of [...view.keys()].sort()) {
    const unit = unitOf(key);
    units.set(unit, `${units.get(unit) ?? ''}${key}=${view.get(key) ?? ''} `);
  }
  return units;
}
