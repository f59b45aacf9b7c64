/** Random calls, and one side of a comparison: the calls are made on it, and what it then holds is described. */
import { constants, type BigIntStats, type Dirent, type FSWatcher } from 'node:fs';

import fc from 'fast-check';

import type { SimulatedFs } from './node-fs.js';

const { O_RDONLY, O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND } = constants;
const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Node.js has no constant for it. */
const O_PATH = 0o10_000_000;

export const OTHER_USER = 1_000;

/** A call: its name, who makes it, and its arguments. A string that begins with "/" is below the directory of the test. */
export interface Step {
  readonly call: string;
  readonly user: 0 | typeof OTHER_USER;
  readonly args: readonly unknown[];
}

/** A descriptor, by the order of opening. */
interface Slot {
  readonly slot: number;
  /** Of a path below it. */
  readonly below?: string;
}

const path = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.constantFrom('/a', '/b', '/d', '/d/a', '/d/b', '/d/e', '/d/e/a', '/l', '/d/l'),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom('/a/', '/d/', '/l/', '/l/a', '/l/e', '/d/.', '/d/..', '/d/e/..', '/.'),
  },
  { weight: 1, arbitrary: fc.constantFrom('/a/.', `/${'n'.repeat(256)}`, '/x'.repeat(2_040), '/d/e/a/b') },
  {
    weight: 2,
    arbitrary: fc.record({
      slot: fc.nat({ max: 2 }),
      below: fc.constantFrom('/.', '/a', '/e', '/..', '/b/'),
    }),
  },
);
const slot = fc.record({ slot: fc.nat({ max: 2 }) });
const target = fc.constantFrom('a', 'b', 'd', 'd/', 'l', '../a', 'e', '.', '..', 'missing', '/d', '/d/e');
const mode = fc.constantFrom(0o755, 0o700, 0o600, 0o644, 0o000, 0o1777, 0o2775, 0o311, 0o444, 0o6755);
const id = fc.constantFrom(-1, 0, OTHER_USER);
const flags = fc
  .tuple(
    fc.constantFrom(O_RDONLY, O_WRONLY, O_RDWR, O_PATH),
    fc.subarray([O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_NOFOLLOW, O_NONBLOCK, O_DIRECTORY], { maxLength: 3 }),
  )
  .map(([access, more]) => more.reduce((sum, flag) => sum | flag, access))
  // What the two together mean has changed with the versions of Linux, and O_EXCL without O_CREAT means nothing.
  .filter(
    (sum) =>
      (sum & (O_CREAT | O_DIRECTORY)) !== (O_CREAT | O_DIRECTORY) && (sum & (O_CREAT | O_EXCL)) !== O_EXCL,
  )
  .filter((sum) => !(sum & O_PATH) || !(sum & (O_CREAT | O_TRUNC)));
const text = fc.constantFrom('x', 'hello', '');

export const step: fc.Arbitrary<Step> = fc
  .record({
    user: fc.constantFrom(0 as const, 0 as const, OTHER_USER),
    callAndArgs: fc.oneof(
      fc.tuple(fc.constant('open'), path, flags, mode),
      fc.tuple(
        fc.constant('open'),
        path,
        fc.constantFrom(O_WRONLY | O_CREAT | O_TRUNC, O_RDWR | O_CREAT),
        mode,
      ),
      fc.tuple(fc.constantFrom('close', 'fstat', 'fsync', 'read'), slot),
      fc.tuple(fc.constantFrom('write', 'write', 'pwrite'), slot, text),
      fc.tuple(fc.constant('ftruncate'), slot, fc.constantFrom(0, 3)),
      fc.tuple(fc.constant('fchmod'), slot, mode),
      fc.tuple(fc.constant('fchown'), slot, id, id),
      fc.tuple(fc.constantFrom('lstat', 'stat', 'readlink', 'readdir'), path),
      fc.tuple(fc.constantFrom('unlink', 'unlink', 'rmdir', 'watch'), path),
      fc.tuple(fc.constantFrom('rename', 'rename', 'rename', 'link'), path, path),
      fc.tuple(fc.constant('symlink'), target, path),
      fc.tuple(fc.constantFrom('mkdir', 'mkdir', 'chmod'), path, mode),
      fc.tuple(fc.constant('chown'), path, id, id),
      fc.tuple(fc.constant('utimes'), path, fc.constant(5), fc.constantFrom(7, 1_700_000_000)),
      fc.tuple(fc.constant('unwatch'), slot),
      fc.tuple(fc.constant('events')),
    ),
  })
  .map(({ user, callAndArgs }) => {
    const [call, ...args] = callAndArgs as [string, ...unknown[]];
    return { call, user, args };
  });

/** What both have: calls, a way to make them as a user, and events. */
export interface Side {
  /** Makes calls as this user. */
  readonly as: <T>(user: number, make: (fs: SimulatedFs) => T) => T;
  /** Resolves when all events so far have been handed over. */
  readonly drain: () => Promise<void>;
}

/** What is at a path, and whether its mtime and its ctime have changed since the last look. */
export interface State {
  readonly inode: string | undefined;
  isTouched: boolean;
  isChanged: boolean;
}

/** The files of one side, and what was seen of them. */
export class Scene {
  readonly #side: Side;
  readonly #base: string;
  readonly #fds: (number | undefined)[] = [];
  readonly #watchers: (FSWatcher | undefined)[] = [];
  #events: string[] = [];
  #seen = new Map<string, BigIntStats>();

  constructor(side: Side, base: string) {
    this.#side = side;
    this.#base = base;
  }

  /** Makes a call. Returns its answer or error. */
  async make({ call, user, args }: Step): Promise<unknown> {
    if (call === 'events') {
      await this.#side.drain();
      return this.#events.splice(0);
    }
    if (call === 'unwatch') return this.#watchers.at(-1 - (args[0] as Slot).slot)?.close();
    const given = args.map((arg) => this.#concrete(arg));
    try {
      return this.#side.as(user, (fs) => this.#plain(call, this.#call(fs, call, given)));
    } catch (error) {
      const { code, syscall, message } = error as NodeJS.ErrnoException;
      return { code, syscall, message: code === undefined ? message : this.#masked(message) };
    }
  }

  #call(calls: SimulatedFs, call: string, args: unknown[]): unknown {
    const [first, second] = args;
    const fd = first as number;
    switch (call) {
      case 'open':
        this.#fds.push((calls.openSync as (...all: unknown[]) => number)(...args));
        return 'opened';
      case 'close':
        this.#fds[this.#fds.indexOf(fd)] = undefined;
        {
          calls.closeSync(fd);
          return;
        }
      case 'read': {
        const buffer = Buffer.alloc(8);
        return buffer.toString('latin1', 0, calls.readSync(fd, buffer, 0, 8, null));
      }
      case 'write':
      case 'pwrite': {
        const bytes = Buffer.from(String(second));
        return calls.writeSync(fd, bytes, 0, bytes.length, call === 'write' ? null : 2);
      }
      case 'readdir':
        return calls.readdirSync(first as string, { withFileTypes: true });
      case 'lstat':
      case 'stat':
      case 'fstat':
        return (calls[`${call}Sync`] as (...all: unknown[]) => unknown)(first, { bigint: true });
      case 'watch': {
        const watcher = calls.watch(first as string);
        const number = this.#watchers.push(watcher) - 1;
        watcher.on('change', (type, name) => this.#events.push(`${number} ${type} ${String(name)}`));
        return 'watched';
      }
      default:
        return (calls as unknown as Record<string, (...all: unknown[]) => unknown>)[`${call}Sync`]?.(...args);
    }
  }

  #concrete(arg: unknown): unknown {
    if (typeof arg === 'string') return arg.startsWith('/') ? `${this.#base}${arg}` : arg;
    if (typeof arg !== 'object') return arg;
    const { slot: number, below } = arg as Slot;
    // A descriptor that is not open has another number on the two sides.
    const fd = this.#fds.at(-1 - number) ?? 999_999;
    return below === undefined ? fd : `/proc/self/fd/${fd}${below}`;
  }

  #masked(message: string): string {
    return message.replaceAll(/\/fd\/\d+/g, '/fd/N').replaceAll(this.#base, '');
  }

  #plain(call: string, answer: unknown): unknown {
    if (call === 'mkdir') return undefined;
    if (typeof answer === 'string') return answer.replaceAll(this.#base, '');
    if (Array.isArray(answer)) return (answer as Dirent[]).map((entry) => `${entry.name} ${kindOf(entry)}`);
    return answer !== null && typeof answer === 'object' ? described(answer as BigIntStats) : answer;
  }

  /** Everything that is there, and which timestamps have changed since the last call. */
  state(): Map<string, State> {
    return this.#side.as(0, (fs) => this.#stateIn(fs));
  }

  #stateIn(calls: SimulatedFs): Map<string, State> {
    const state = new Map<string, State>();
    const seen = new Map<string, BigIntStats>();
    const inodes = new Map<bigint, string>();
    const walk = (at: string): void => {
      const full = `${this.#base}${at}`;
      const stat = permitted(() => calls.lstatSync(full, { bigint: true, throwIfNoEntry: false }));
      if (!stat) return;
      const before = this.#seen.get(at);
      seen.set(at, stat);
      if (!inodes.has(stat.ino)) inodes.set(stat.ino, at);
      const isSame = before?.ino === stat.ino && before.birthtimeNs === stat.birthtimeNs;
      const isTouched = isSame && stat.mtimeNs !== before.mtimeNs;
      const isChanged = isSame && stat.ctimeNs !== before.ctimeNs;
      state.set(at, { ...described(stat), inode: inodes.get(stat.ino), isTouched, isChanged });
      if (!stat.isDirectory()) return;
      const entries = permitted(() => calls.readdirSync(full, { withFileTypes: true }));
      for (const { name } of entries ?? []) walk(`${at}/${name}`);
    };
    walk('');
    this.#seen = seen;
    return state;
  }

  close(): void {
    for (const fd of this.#fds) if (fd !== undefined) this.#side.as(0, (fs) => fs.closeSync(fd));
    for (const watcher of this.#watchers) watcher?.close();
  }
}

/** Undefined if the user that runs the test may not look. */
function permitted<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return undefined;
    throw error;
  }
}

const kindOf = (entry: BigIntStats | Dirent): string =>
  entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : entry.isSymbolicLink() ? 'link' : 'other';

function described(stat: BigIntStats): object {
  const { mode: bits, nlink, uid, gid, size } = stat;
  const isDirectory = stat.isDirectory();
  return { kind: kindOf(stat), bits, nlink, uid, gid, size: isDirectory ? 0n : size };
}
