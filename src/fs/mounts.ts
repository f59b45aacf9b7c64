/**
 * The mounts of this process: where a call may hang, and which file system a path is on. The tables of other processes only
 * tell what is mounted there.
 *
 * | the mount table                                    | a path is on                                            |
 * |----------------------------------------------------|---------------------------------------------------------|
 * | can be read                                        | the mount with the longest mount point above it, of     |
 * |                                                    | those that a path can lead to (mount-table.ts)          |
 * | cannot be read (`node --permission`, Deno's lists) | the kind that `statfs` gave for it or a directory above |
 * | cannot be read, and `statfs` was not called yet    | a mount of unknown kind, where a call may hang          |
 * | does not exist (macOS, Windows, memfs)             | a local disk                                            |
 * | is another one, behind a magic link (magic-link.ts)| a mount of unknown kind                                 |
 *
 * While a call on a mount that may hang is awaited, the table is read again every second. A call that is awaited on a
 * mount that its path no longer leads to is given up: its answer is of no interest any more.
 */
import { systemClock } from '../core/ports/clock.js';
import { errnoOf } from '../core/errors/errno.js';
import { promised, type FileSystem } from '../core/ports/file-system.js';
import { dirname, pathForCall, resolve } from '../core/ports/platform-path.js';
import { processState } from '../core/process-state.js';
import { SerialQueue } from '../core/scheduling/serial-queue.js';
import { readProc, type ProcCalls } from './calls.js';
import { kindOfMagic, type FileSystemKind } from './file-system-kind.js';
import { isBehindMagicLink, magicLinkOf } from './magic-link.js';
import { callsMayHang, linesOf, reachableMounts, type Mount } from './mount-table.js';

const MOUNT_TABLE = '/proc/self/mountinfo';

/** How often the table is read while a call is awaited, ms: a mount that hangs may be replaced. */
const WAITING_INTERVAL_MS = 1_000;

/** The calls that this file needs. */
export type MountCalls = ProcCalls & Pick<FileSystem, 'statfs'>;

/** The share of time that reading the table may take: on some nodes it has thousands of lines. */
const READING_SHARE = 0.1;

/** How many tables of other processes are kept. */
const MAX_OTHERS = 64;

const LOCAL: Mount = { id: '', point: '/', root: '/', kind: { name: 'local', place: 'disk' } };
const UNKNOWN = mountOfKind('/', { name: 'unknown', place: 'unknown' });

/** What the process knows of the mounts of one `fs`. */
interface Reading {
  table: string | undefined;
  /** When it was read, monotonic ms. */
  at: number;
  /** How long that took, ms. */
  tookMs: number;
  /** The calls that may hang, by mount. */
  readonly outstanding: SerialQueue;
}

const readings = processState('mounts', () => new WeakMap<MountCalls, Reading>());

function readingOf(fs: MountCalls): Reading {
  let reading = readings().get(fs);
  if (!reading) readings().set(fs, (reading = newReading()));
  return reading;
}

function newReading(): Reading {
  return { table: undefined, at: -Infinity, tookMs: 0, outstanding: new SerialQueue() };
}

/** The mounts of each `fs`, as this copy of the library understands the table. */
const known = new WeakMap<MountCalls, Mounts>();

/** The mounts when the table was last read. */
export class Mounts {
  /** A new number after each change of the table. */
  version = 0;
  /** By mount point; if several are stacked, the one on top. */
  byPoint: ReadonlyMap<string, Mount> = new Map();
  /** Whether there is any path on which a call may never return. A link may lead there from anywhere. */
  mayHangSomewhere = false;
  readonly #fs: MountCalls;
  readonly #path: string;
  /** By device number, as in `st_dev`. */
  #kinds = new Map<bigint, FileSystemKind>();
  readonly #reading: Reading;
  readonly #waits = new Set<{ readonly path: string; readonly mount: Mount; readonly abandon: () => void }>();
  #isReadingAgain = false;
  /** Those of other processes, by the path of their table. */
  readonly #others = new Map<string, Mounts>();
  #otherwise: Mount = LOCAL;
  #isAnyRemote = false;
  #table: string | undefined;

  private constructor(fs: MountCalls, path: string, reading: Reading) {
    this.#fs = fs;
    this.#path = path;
    this.#reading = reading;
  }

  /** @param minAgeMs the table is read again if the last reading is older, and did not take too long. */
  static of(fs: MountCalls, minAgeMs?: number): Mounts {
    let mounts = known.get(fs);
    if (!mounts) known.set(fs, (mounts = new Mounts(fs, MOUNT_TABLE, readingOf(fs))));
    mounts.#refresh(minAgeMs);
    return mounts;
  }

  #refresh(minAgeMs = 100): void {
    const { at, tookMs } = this.#reading;
    const maxAgeMs = Math.max(minAgeMs, tookMs / READING_SHARE);
    if (systemClock.monotonic() - at > maxAgeMs) this.#read();
    else this.#learn();
  }

  /**
   * The table that has what is mounted around a resolved path, and the path in it. Behind a link to the root of a
   * process, that is the table of the process: `/proc/7/root/./etc` is `/etc` in `/proc/7/mountinfo`, which is empty if
   * it may not be read.
   */
  around(realPath: string): { readonly table: Mounts; readonly path: string; readonly prefix: string } {
    const prefix = isBehindMagicLink(realPath) ? magicLinkOf(realPath) : '';
    if (!prefix.endsWith('/root/.')) return { table: this, path: realPath, prefix: '' };
    const tablePath = `${prefix.slice(0, -'root/.'.length)}mountinfo`;
    let table = this.#others.get(tablePath);
    if (!table) {
      // Of processes that have ended, nobody asks again.
      if (this.#others.size === MAX_OTHERS) this.#others.clear();
      this.#others.set(tablePath, (table = new Mounts(this.#fs, tablePath, newReading())));
    }
    table.#refresh();
    // The parent of a root is itself.
    return { table, path: resolve(`/${realPath.slice(prefix.length)}`), prefix };
  }

  /** The mount that a path is on. @param path absolute, every link above its last name resolved. */
  at(path: string): Mount {
    if (isBehindMagicLink(path)) return mountOfKind(magicLinkOf(path), UNKNOWN.kind);
    for (let above = path; ; above = dirname(above)) {
      const mount = this.byPoint.get(above);
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

  /** A directory was found, every link resolved. What is not known was mounted since the table was read. */
  found(device: bigint, realPath: string): void {
    if (this.kindOf(device, realPath) === UNKNOWN.kind) this.#refresh();
  }

  /** Whether a call on this path may never return. */
  mayHang(path: string): boolean {
    if (!this.mayHangSomewhere && !isBehindMagicLink(path)) return false;
    return this.at(path).hangsWith !== undefined;
  }

  /**
   * Makes a call that may hang. At most one is outstanding on each mount: a few of them would occupy the whole thread
   * pool of the process. If the mount is replaced or unmounted, rejects with ESTALE, whatever becomes of the call.
   */
  inTurn<T>(path: string, call: () => Promise<T>): Promise<T> {
    const mount = this.#waitsFor(path);
    const answer = this.#reading.outstanding.run(`${mount.point} ${mount.id}`, call);
    return this.#untilReplaced(mount, path, answer);
  }

  #untilReplaced<T>(mount: Mount, path: string, answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const abandon = (): void => {
        // The call itself may never end.
        this.#waits.delete(wait);
        reject(stale(path));
      };
      const wait = { path, mount, abandon };
      this.#waits.add(wait);
      this.#readWhileWaiting();
      void answer.then(resolve, reject).finally(() => this.#waits.delete(wait));
    });
  }

  /** The mount that a call on this path waits for. */
  #waitsFor(path: string): Mount {
    const mount = this.at(path);
    return mount.hangsWith ?? mount;
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
    if (!this.#isAnyRemote) return undefined;
    return paths.map((path) => this.at(path).kind).find(({ place }) => place === 'remote')?.name;
  }

  /** Also for their directories: of a file, its directory is what is listened to. */
  async askAll(paths: readonly string[]): Promise<void> {
    for (const path of paths) for (const place of [path, dirname(path)]) await this.ask(place);
  }

  /** Calls `statfs` for a path that is not in the mount table. Never rejects. */
  async ask(path: string): Promise<void> {
    const { statfs } = this.#fs;
    if (this.#otherwise !== UNKNOWN || !statfs) return;
    for (let place = path; ; place = dirname(place)) {
      if (this.byPoint.has(place)) return;
      try {
        const answer = promised<{ type: number }>((done) => statfs(pathForCall(place), done));
        const { type } = await this.#untilReplaced(this.#waitsFor(place), place, answer);
        const mount = mountOfKind(place, kindOfMagic(type));
        this.byPoint = new Map(this.byPoint).set(place, mount);
        this.#isAnyRemote ||= mount.kind.place === 'remote';
        return;
      } catch (error) {
        if (errnoOf(error) !== 'ENOENT' || place === dirname(place)) return;
      }
    }
  }

  #read(): void {
    const reading = this.#reading;
    reading.at = systemClock.monotonic();
    reading.table = process.platform === 'linux' ? readProc(this.#fs, this.#path) : undefined;
    this.#learn();
    reading.tookMs = systemClock.monotonic() - reading.at;
  }

  #learn(): void {
    const { table } = this.#reading;
    if (this.version === 0 || table !== this.#table) this.#changed(table);
  }

  #changed(table: string | undefined): void {
    this.#table = table;
    this.version += 1;
    if (table === undefined) {
      const isHidden = process.platform === 'linux' && this.#fs.statfs !== undefined;
      this.#otherwise = isHidden ? UNKNOWN : LOCAL;
      this.mayHangSomewhere = isHidden;
      return;
    }
    const lines = linesOf(table);
    this.byPoint = reachableMounts(lines);
    this.#kinds = new Map(lines.map(({ device, kind }) => [device, kind]));
    this.mayHangSomewhere = this.#isAnyRemote = false;
    for (const { hangsWith, kind } of this.byPoint.values()) {
      this.mayHangSomewhere ||= hangsWith !== undefined;
      this.#isAnyRemote ||= kind.place === 'remote';
    }
    for (const { path, mount, abandon } of this.#waits) {
      if (this.#waitsFor(path).id !== mount.id) abandon();
    }
  }
}

function mountOfKind(point: string, kind: FileSystemKind): Mount {
  const mount: { -readonly [K in keyof Mount]: Mount[K] } = { id: '', point, root: '', kind };
  if (callsMayHang(kind)) mount.hangsWith = mount;
  return mount;
}

/** The failure of a call on a mount that is gone. */
function stale(path: string): Error {
  const error = new Error(`ESTALE: the mount was replaced while "${path}" was read`);
  return Object.assign(error, { code: 'ESTALE', path });
}
