/** Which file systems are mounted where. */
import type { Entry } from './inode.js';
import type { Storage } from './storage.js';

/** A place in the tree of all mounts. */
export interface Place {
  readonly mount: Mount;
  readonly entry: Entry;
}

export class Mount {
  /** Calls that touch it do not return. */
  isHung = false;
  isDetached = false;
  /** How many descriptors were opened through it. */
  opens = 0;

  readonly id: number;
  /** What of its file system is mounted. */
  root: Entry;
  /** Undefined for the root of all. */
  readonly on: Place | undefined;
  readonly isReadOnly: boolean;
  /** Programs in containers have a mount namespace without it. */
  readonly isPrivate: boolean;

  constructor(id: number, root: Entry, on: Place | undefined, isReadOnly: boolean, isPrivate = false) {
    this.id = id;
    this.root = root;
    this.on = on;
    this.isReadOnly = isReadOnly;
    this.isPrivate = isPrivate;
  }

  get storage(): Storage {
    return this.root.inode.storage;
  }
}

/** What is mounted on this place, or the place itself. @param isContained whether the viewer is in a container. */
export function enter(place: Place, isContained: boolean): Place {
  for (;;) {
    const { mount, entry } = place;
    const above = entry.mounts?.findLast(
      ({ on, isPrivate }) => on?.mount === mount && !(isPrivate && isContained),
    );
    if (!above) return place;
    place = { mount: above, entry: above.root };
  }
}

/** The place itself, or where it is mounted if it is the root of a mount. */
export function leave({ mount, entry }: Place): Place {
  while (entry === mount.root && mount.on) ({ mount, entry } = mount.on);
  return { mount, entry };
}

/** As `..`. */
export function parentOf(place: Place, isContained: boolean): Place {
  const { mount, entry } = leave(place);
  if (!entry.parent || entry === mount.root) return { mount, entry };
  return enter({ mount, entry: entry.parent }, isContained);
}

/** The path of a place, as `/proc/self/fd` shows it. */
export function pathOf(place: Place): string {
  let path = '';
  for (
    let { mount, entry } = leave(place);
    entry.parent;
    { mount, entry } = leave({ mount, entry: entry.parent })
  ) {
    if (entry === mount.root) break;
    path = `/${entry.name}${path}`;
  }
  return `${path === '' ? '/' : path}${place.entry.isRemoved ? ' (deleted)' : ''}`;
}

/** The path of an entry in its own file system. */
function pathWithin(entry: Entry): string {
  let path = '';
  for (let at = entry; at.parent; at = at.parent) path = `/${at.name}${path}`;
  return path === '' ? '/' : path;
}

/** As `/proc/self/mountinfo`. */
export function mountInfo(mounts: readonly Mount[]): string {
  const lines = mounts.map((mount) => {
    const { id, root, on, storage, isReadOnly } = mount;
    const { device, type } = storage;
    const fields = [id, on?.mount.id ?? 1, `${device >> 8n}:${device & 255n}`, escape(pathWithin(root))];
    const access = isReadOnly ? 'ro' : 'rw';
    fields.push(escape(on ? pathOf(on) : '/'), access, '-', type, 'none', access);
    return `${fields.join(' ')}\n`;
  });
  return lines.join('');
}

function escape(path: string): string {
  return path.replace(/[ \t\n\\]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, '0')}`);
}
