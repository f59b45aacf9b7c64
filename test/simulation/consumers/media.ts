/** What programs write with the library, and what readers find: a file, or a volume. */
import { AtomicVolume, atomicWriteFile, atomicWriteFileSync } from '../../../src/index.js';
import { exists, type Fs } from '../actors/calls.js';
import { directory, fileText, inside } from '../views.js';
import type { How } from './rights.js';

export type Durability = 'full' | 'file' | 'none';

/** How a text is written, and read. */
export interface Medium {
  /** What readers find; undefined if there is nothing. */
  readonly see: (fs: Fs, path: string) => string | undefined;
  /** Resolves to what could not be done afterwards. */
  readonly write: (fs: Fs, path: string, text: string, durability: Durability, how: How) => Promise<unknown>;
  /** What is found by other ways that readers take, once nobody writes. */
  readonly seeAtRest: (fs: Fs, path: string) => string | undefined;
  /** A program meets its fate before one of so many system calls. */
  readonly calls: number;
  /** Undefined if it cannot be written in one go. */
  readonly writeSync?: (fs: Fs, path: string, text: string, durability: Durability, how: How) => void;
  /** Undefined if there is no such thing. */
  readonly clear?: (fs: Fs, path: string, durability: Durability) => Promise<void>;
}

export const FILE: Medium = {
  calls: 80,
  see: fileText,
  seeAtRest: fileText,
  async write(fs, path, text, durability, how) {
    await atomicWriteFile(path, text, { fs, durability, createDirectory: true, ...how });
  },
  writeSync(fs, path, text, durability, how) {
    atomicWriteFileSync(path, text, { fs, durability, createDirectory: true, ...how });
  },
};

/** A volume with two or three files, one of them in a directory. */
export const VOLUME: Medium = {
  calls: 200,
  see: (fs, path) => (exists(fs, `${path}/..data`) ? textIn(directory(fs, path, false)) : undefined),
  seeAtRest(fs, path) {
    if (!exists(fs, path)) return undefined;
    const keys = fs.readdirSync(path, { withFileTypes: true }).filter(({ name }) => !name.startsWith('..'));
    const files = keys.flatMap(({ name }): [string, string][] => {
      const text = fileText(fs, `${path}/${name}`);
      if (text !== undefined) return [[name, text]];
      return [...inside(fs, `${path}/${name}`)].map(([key, below]) => [`${name}/${key}`, below]);
    });
    return files.length > 0 ? textIn(new Map(files)) : undefined;
  },
  async write(fs, path, text, durability, how) {
    const volume = new AtomicVolume(path, { fs, durability, createDirectory: true });
    const files = [...filesOf(text)].map(([key, data]) => [key, { data, ...how }] as const);
    try {
      await volume.write(new Map(files) as Parameters<AtomicVolume['write']>[0]);
      return volume.status().lastError;
    } finally {
      await volume.close();
    }
  },
  async clear(fs, path, durability) {
    const volume = new AtomicVolume(path, { fs, durability });
    try {
      await volume.clear();
    } finally {
      await volume.close();
    }
  },
};

/** The text that was written; all files in JSON if they are not those of one write. */
function textIn(files: ReadonlyMap<string, string>): string | undefined {
  const [text = ''] = files.values();
  const wanted = filesOf(text);
  const isWhole = wanted.size === files.size && [...wanted].every(([key]) => files.get(key) === text);
  return isWhole ? text : JSON.stringify([...files]);
}

function filesOf(text: string): Map<string, string> {
  const keys = text.length % 2 === 0 ? ['a', 'd/b'] : ['a', 'c', 'd/b'];
  return new Map(keys.map((key) => [key, text]));
}

/** What programs write, by the kind of the schedule. */
export const MEDIA: Readonly<Record<string, Medium>> = { 'write-file': FILE, 'write-volume': VOLUME };
