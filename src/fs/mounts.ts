/**
 * The mounts of this process: where a call may hang, and which mounts never show an update.
 *
 * | the mount table                                    | a path is on                                            |
 * |----------------------------------------------------|---------------------------------------------------------|
 * | can be read                                        | the mount with the longest mount point above it         |
 * | cannot be read (`node --permission`, Deno's lists) | the kind that `statfs` gave for it or a directory above |
 * | cannot be read, and `statfs` was not called yet    | a mount of unknown kind, where a call may hang          |
 * | does not exist (macOS, Windows, memfs)             | a local disk                                            |
 *
 * While a call on a mount that may hang is awaited, the table is read again every second. A call that is awaited on a
 * mount that is no longer there, or has another one on top, is given up: its answer is of no interest any more.
 */
import { constants } from 'node:fs';
import { dirname } from 'node:path';

import { systemClock } from '../core/clock.js';
import { errnoOf } from '../core/errno.js';
import { promised, type FileSystem } from '../core/file-system.js';
import { pathForCall, pathFromBytes } from '../core/path-bytes.js';
import { SerialQueue } from '../core/serial-queue.js';
import { kindOfMagic, kindOfType, type FileSystemKind } from './file-system-kind.js';
import { isRevisionName } from './volume-layout.js';

const MOUNT_TABLE = '/proc/self/mountinfo';
const CHUNK_BYTES = 65_536;
/** For all readings, each of which is synchronous. */
const chunk = Buffer.allocUnsafe(CHUNK_BYTES);

/** How often the table is read while a call is awaited, ms: a mount that hangs may be replaced. */
const WAITING_INTERVAL_MS = 1_000;

/** A mount of this process. */
export interface Mount {
  /** Differs from that of the mount that was at this point before; empty if only the kind is known. */
  readonly id: string;
  /** The directory or file where it is mounted. */
  readonly point: string;
  /** Which part of its file system is mounted there; empty if only the kind is known. */
  readonly root: string;
  readonly kind: FileSystemKind;
}

/** The calls that this file needs. */
export type MountCalls = Pick<FileSystem, 'openSync' | 'readSync' | 'closeSync' | 'statfs'>;

const LOCAL: Mount = { id: '', point: '/', root: '/', kind: { name: 'local', place: 'disk' } };
const UNKNOWN: Mount = { id: '', point: '/', root: '/', kind: { name: 'unknown', place: 'unknown' } };

/** The last reading for each `fs`. */
const readings = new WeakMap<MountCalls, Mounts>();

/** The mounts when the table was last read. */
export class Mounts {
  readonly #fs: MountCalls;
  /** By mount point; if several are stacked, the one on top. */
  #mounts = new Map<string, Mount>();
  /** By device number, as in `st_dev`. */
  #kinds = new Map<bigint, FileSystemKind>();
  readonly #outstanding = new SerialQueue();
  readonly #waits = new Set<{ readonly mount: Mount; readonly abandon: () => void }>();
  #isReadingAgain = false;
  #otherwise = LOCAL;
  #mayHangAnywhere = false;
  #table: string | undefined;
  #readAt = -Infinity;
  #version = 0;

  private constructor(fs: MountCalls) {
    this.#fs = fs;
  }

  /** @param maxAgeMs the table is read again if the last reading is older. Reading it takes as long as ten lookups. */
  static of(fs: MountCalls, maxAgeMs = 100): Mounts {
    let mounts = readings.get(fs);
    if (!mounts) readings.set(fs, (mounts = new Mounts(fs)));
    if (systemClock.monotonic() - mounts.#readAt > maxAgeMs) mounts.#read();
    return mounts;
  }

  /** A new number after each change of the table. */
  get version(): number {
    return this.#version;
  }

  /** The mount that a path is on. @param path absolute, every link above its last name resolved. */
  at(path: string): Mount {
    for (let above = path; ; above = dirname(above)) {
      const mount = this.#mounts.get(above);
      if (mount) return mount;
      if (above === dirname(above)) return this.#otherwise;
    }
  }

  /**
   * The kind of the file system with this `st_dev`.
   * @param realPath where the device was found. It counts if the device is not in the table: there may be no table, a
   * Btrfs subvolume has its own number, and anything may have been mounted since.
   */
  kindOf(device: bigint, realPath: string): FileSystemKind {
    const kind = this.#kinds.get(device);
    if (kind) return kind;
    const around = this.at(realPath).kind;
    return this.#kinds.size === 0 || around.name === 'btrfs' ? around : UNKNOWN.kind;
  }

  /** Whether there is any path on which a call may never return. A link may lead there from anywhere. */
  get mayHangSomewhere(): boolean {
    return this.#mayHangAnywhere;
  }

  /** Whether a call on this path may never return. */
  mayHang(path: string): boolean {
    return this.#mayHangAnywhere && mayHang(this.at(path));
  }

  /**
   * Makes a call that may hang. At most one is outstanding on each mount: a few of them would occupy the whole thread
   * pool of the process. If the mount is replaced or unmounted, rejects with ESTALE, whatever becomes of the call.
   */
  inTurn<T>(path: string, call: () => Promise<T>): Promise<T> {
    const mount = this.at(path);
    return new Promise((resolve, reject) => {
      const abandon = (): void => {
        // The call itself may never end.
        this.#waits.delete(wait);
        reject(stale(path));
      };
      const wait = { mount, abandon };
      this.#waits.add(wait);
      this.#readWhileWaiting();
      void this.#outstanding
        .run(`${mount.point} ${mount.id}`, call)
        .then(resolve, reject)
        .finally(() => this.#waits.delete(wait));
    });
  }

  #readWhileWaiting(): void {
    if (this.#isReadingAgain || this.#waits.size === 0) return;
    this.#isReadingAgain = true;
    const again = (): void => {
      this.#isReadingAgain = false;
      this.#read();
      this.#readWhileWaiting();
    };
    systemClock.schedule(again, WAITING_INTERVAL_MS, { ref: false });
  }

  /** The name of the first file system among these that reports no events, if there is one. */
  eventlessFileSystem(paths: readonly string[]): string | undefined {
    for (const path of paths) {
      if (!this.mayHang(path)) continue;
      const { kind } = this.at(path);
      if (kind.place === 'remote') return kind.name;
    }
    return undefined;
  }

  /** Calls `statfs` for a path that is not in the mount table. Never rejects. */
  async ask(path: string): Promise<void> {
    const { statfs } = this.#fs;
    if (this.#otherwise !== UNKNOWN || !statfs) return;
    for (let place = path; ; place = dirname(place)) {
      if (this.#mounts.has(place)) return;
      try {
        const { type } = await promised<{ type: number }>((done) => statfs(pathForCall(place), done));
        this.#mounts.set(place, { id: '', point: place, root: '', kind: kindOfMagic(type) });
        return;
      } catch (error) {
        if (errnoOf(error) !== 'ENOENT' || place === dirname(place)) return;
      }
    }
  }

  #read(): void {
    this.#readAt = systemClock.monotonic();
    const table = process.platform === 'linux' ? this.#readTable() : undefined;
    if (this.#version > 0 && table === this.#table) return;
    this.#table = table;
    this.#version += 1;
    if (table === undefined) {
      const isHidden = process.platform === 'linux' && this.#fs.statfs !== undefined;
      this.#otherwise = isHidden ? UNKNOWN : LOCAL;
      this.#mayHangAnywhere = isHidden;
      return;
    }
    const mounts = parse(table);
    this.#mounts = new Map(mounts.map((mount) => [mount.point, mount]));
    this.#kinds = new Map(mounts.map(({ device, kind }) => [device, kind]));
    this.#mayHangAnywhere = [...this.#mounts.values()].some(mayHang);
    for (const { mount, abandon } of this.#waits) {
      if (this.#mounts.get(mount.point)?.id !== mount.id) abandon();
    }
  }

  /** Never hangs, because the kernel answers from memory. */
  #readTable(): string | undefined {
    try {
      const fd = this.#fs.openSync(MOUNT_TABLE, constants.O_RDONLY);
      try {
        let table = '';
        for (;;) {
          const count = this.#fs.readSync(fd, chunk, 0, CHUNK_BYTES, null);
          if (count === 0) return table;
          table += chunk.toString('latin1', 0, count);
        }
      } finally {
        this.#fs.closeSync(fd);
      }
    } catch {
      return undefined;
    }
  }
}

/** The failure of a call on a mount that is gone. */
function stale(path: string): Error {
  const error = new Error(`ESTALE: the mount was replaced while "${path}" was read`);
  return Object.assign(error, { code: 'ESTALE', path });
}

/** A lookup in an autofs waits for the file system that it mounts, so its kind is unknown. */
function mayHang({ kind: { place } }: Mount): boolean {
  return place === 'remote' || place === 'unknown';
}

/**
 * Parses `mountinfo` (`proc_pid_mountinfo(5)`): the third field is the device, the fourth the root, the fifth the mount
 * point; the type follows a hyphen.
 */
function parse(table: string): (Mount & { readonly device: bigint })[] {
  return table.split('\n').flatMap((line) => {
    const [id = '', , device = '', root, point, ...rest] = line.split(' ');
    if (root === undefined || point === undefined) return [];
    const kind = kindOfType(rest[rest.indexOf('-') + 1] ?? '');
    return [{ id, point: unescape(point), root: unescape(root), kind, device: deviceNumber(device) }];
  });
}

/** "major:minor" as a number, as in `st_dev` (`makedev(3)`). */
function deviceNumber(device: string): bigint {
  const [major = 0, minor = 0] = device.split(':').map(Number);
  const low = minor % 256;
  // In the kernel the major number has 12 bits and the minor one 20.
  return BigInt((minor - low) * 4096 + major * 256 + low);
}

/** Decodes spaces and backslashes, which are written as octal numbers, and bytes that are not UTF-8. */
function unescape(field: string): string {
  const bytes = field.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(parseInt(digits, 8)),
  );
  return pathFromBytes(Buffer.from(bytes, 'latin1'));
}

/**
 * Why a file or directory will never show an update; undefined if it may. kubelet mounts a `subPath` by binding a file
 * or directory of one revision, and the mount keeps showing that revision.
 * @param realPath every link resolved.
 * @param kind a directory that is a mount point shows its changes.
 */
export function staleMount(
  mount: Mount,
  realPath: string,
  kind: 'file' | 'directory',
): { readonly kind: 'revision' | 'file'; readonly message: string } | undefined {
  if (mount.root === '') return undefined;
  if (mount.root.split('/').some(isRevisionName)) {
    const message = `"${mount.point}" is a subPath mount of one revision, which never changes. Mount the whole volume instead`;
    return { kind: 'revision', message };
  }
  if (kind === 'file' && mount.point === realPath) {
    const message = `"${realPath}" is mounted by itself (subPath, or a bind mount of one file); a file that replaces its source never appears there. Mount the directory instead`;
    return { kind: 'file', message };
  }
  return undefined;
}
