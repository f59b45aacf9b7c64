/** What a target shows at this instant, found independently of the library: keys and contents. */
import type { Fs } from './actors/calls.js';
import type { Inode } from './machine/inode.js';

export type View = Map<string, string>;

/** Contents are looked at much more often than written. */
const texts = new WeakMap<Buffer, string>();

/** The text of the file that a path leads to; undefined if there is none. */
export function fileText(fs: Fs, path: string): string | undefined {
  return textOf(fs.inodeAt(path));
}

function textOf(inode: Inode | undefined): string | undefined {
  if (inode?.kind !== 'file') return undefined;
  let text = texts.get(inode.bytes);
  if (text === undefined) texts.set(inode.bytes, (text = inode.bytes.toString()));
  return text;
}

/** A file, by its name. */
export function file(fs: Fs, path: string): View {
  const text = fileText(fs, path);
  return new Map(text === undefined ? [] : [[path.slice(path.lastIndexOf('/') + 1), text]]);
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
  const root = fs.inodeAt(path)?.entries.has('..data') ? `${path}/..data` : path;
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
  for (const [name, { inode: entry, mounts }] of fs.inodeAt(directory)?.entries ?? []) {
    if (name.startsWith('..')) continue;
    const path = `${directory}/${name}`;
    const inode = entry.kind === 'link' || mounts ? fs.inodeAt(path) : entry;
    const text = textOf(inode);
    if (text !== undefined) view.set(`${prefix}${name}`, text);
    else if (isRecursive && entry.kind !== 'link' && inode?.kind === 'directory') {
      const inner = inode.entries.has('..data') ? `${path}/..data` : path;
      collect(fs, inner, `${prefix}${name}/`, true, view);
    }
  }
}

/** What a key belongs to, perhaps by what it contains. */
export type UnitOf = (key: string, text: string) => string;

/** The parts of a view that must be reported as a whole, as text. */
export function byUnit(view: ReadonlyMap<string, string>, unitOf: UnitOf): Map<string, string> {
  const units = new Map<string, string>();
  for (const key of [...view.keys()].sort()) {
    const text = view.get(key) ?? '';
    const unit = unitOf(key, text);
    units.set(unit, `${units.get(unit) ?? ''}${key}=${text} `);
  }
  return units;
}
