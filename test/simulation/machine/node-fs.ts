/** The system calls of a process as `node:fs` offers them: with `Sync`, and with a callback. */
import type { FSWatcher } from 'node:fs';

import type { FileSystem } from '../../../src/core/ports/file-system.js';
import { pathFromBytes } from '../../../src/core/ports/path-bytes.js';
import { attributeCalls } from './attributes.js';
import { Errno, Killed, Stuck } from './errors.js';
import type { Inode } from './inode.js';
import type { NativeWatcher } from './inotify.js';
import { lookup } from './lookup.js';
import { lookupCalls } from './lookups.js';
import { nameCalls } from './names.js';
import { fileCalls } from './open-file.js';
import type { Process } from './process.js';

type Path = string | Buffer;

/** Calls that only actors make. */
interface MoreCalls {
  linkSync(from: Path, to: Path): void;
  mkfifoSync(path: Path, mode?: number): void;
  ftruncateSync(fd: number, size?: number): void;
  chownSync(path: Path, uid: number, gid: number): void;
  utimesSync(path: Path, atime: number, mtime: number): void;
  /** What a path leads to, without a system call; undefined if it leads nowhere. */
  inodeAt(path: string): Inode | undefined;
  watch(path: Path, options?: { readonly persistent?: boolean }): FSWatcher;
}

export type SimulatedFs = FileSystem & MoreCalls;

type Call = (process: Process, ...args: never[]) => unknown;

/** A call that waits for a thread, for its turn, or for a server. */
export interface PendingCall {
  readonly call: string;
  readonly path: string;
  readonly process: Process;
  /** Whether it waits for a mount that hangs. */
  readonly isStuck: boolean;
  /** The process may still not know. Returns false if the call hangs. */
  execute(): boolean;
  /** Executes it if it was not, and tells the process. Returns false if it hangs. */
  answer(): boolean;
  /** Its process was killed. */
  drop(): void;
}

const CALLS: Readonly<Record<string, Call>> = {
  ...lookupCalls,
  ...fileCalls,
  ...nameCalls,
  ...attributeCalls,
};

/** The names of system calls in errors, where they differ from those of the functions. */
const SYSCALLS: Readonly<Record<string, string>> = { readdir: 'scandir', utimes: 'utime' };

/** Calls with two paths; the first of `symlink` is what the link contains. */
const WITH_DESTINATION = ['rename', 'link', 'symlink'];

export function nodeFs(process: Process): SimulatedFs {
  const fs: Record<string, unknown> = {};
  for (const [name, call] of Object.entries(CALLS)) {
    fs[`${name}Sync`] = (...args: unknown[]) => {
      try {
        return make(process, name, call, args);
      } catch (error) {
        if (error instanceof Stuck) process.frozenIn ??= `${name} ${String(args[0])}`;
        throw error;
      }
    };
    fs[name] = (...args: unknown[]) => {
      const pending = pendingCall(process, name, call, args);
      if (process.isKilled) pending.drop();
      else process.machine.pending.push(pending);
    };
  }
  fs['inodeAt'] = (path: string): Inode | undefined => {
    try {
      return lookup(process, path, 'follow').place?.entry.inode;
    } catch {
      return undefined;
    }
  };
  fs['watch'] = (path: Path, { persistent = true } = {}): NativeWatcher =>
    make(process, 'watch', (_, given) => process.watch(nameOf(given), persistent), [path]) as NativeWatcher;
  return fs as unknown as SimulatedFs;
}

function make(process: Process, name: string, call: Call, args: readonly unknown[]): unknown {
  const [first, second] = args;
  const onDescriptor = typeof first === 'number';
  const path = onDescriptor ? process.pathOf(first) : nameOf(first);
  const isByPath = !onDescriptor && process.machine.platform === 'win32';
  if (isByPath) args = args.map((arg, at) => (isPath(arg, at, name) ? process.pathOnMachine(arg) : arg));
  try {
    try {
      process.enter(name, name === 'symlink' ? String(second) : path);
    } catch (error) {
      // A descriptor is closed even if this fails.
      if (name === 'close' && error instanceof Errno) call(process, ...(args as never[]));
      throw error;
    }
    return call(process, ...((args.some(isBytes) ? args.map(textOf) : args) as never[]));
  } catch (error) {
    if (!(error instanceof Errno)) throw error;
    const dest = WITH_DESTINATION.includes(name) ? String(second) : undefined;
    throw error.in(SYSCALLS[name] ?? name, onDescriptor ? undefined : path, dest);
  }
}

const isPath = (arg: unknown, at: number, name: string): arg is string =>
  typeof arg === 'string' && (at === 0 || (at === 1 && WITH_DESTINATION.includes(name)));

const nameOf = (path: unknown): string => (Buffer.isBuffer(path) ? pathFromBytes(path) : String(path));

const isBytes = (value: unknown): boolean => Buffer.isBuffer(value);

/** A path in bytes as text. The bytes of files are `Uint8Array`s or longer than any path, and come after a number. */
function textOf(value: unknown, index: number, args: readonly unknown[]): unknown {
  return Buffer.isBuffer(value) && typeof args[0] !== 'number' ? pathFromBytes(value) : value;
}

function pendingCall(process: Process, name: string, call: Call, given: readonly unknown[]): PendingCall {
  const args = given.slice(0, -1);
  const done = given.at(-1) as (error: unknown, result?: unknown) => void;
  const { pending } = process.machine;
  let outcome: { readonly error: unknown; readonly result?: unknown } | undefined;
  let stuck: Stuck | undefined;
  const execute = (): boolean => {
    if (outcome) return true;
    if (stuck?.mount.isHung) return false;
    try {
      outcome = { error: null, result: make(process, name, call, args) };
    } catch (error) {
      if (error instanceof Stuck) stuck = error;
      else if (!(error instanceof Killed)) outcome = { error };
    }
    return outcome !== undefined;
  };
  const path = typeof args[0] === 'number' ? process.pathOf(args[0]) : nameOf(args[0]);
  const self: PendingCall = {
    call: name,
    path,
    process,
    get isStuck() {
      return stuck?.mount.isHung === true;
    },
    execute,
    answer: () => {
      if (!execute() || !outcome) return false;
      pending.splice(pending.indexOf(self), 1);
      done(outcome.error, outcome.result);
      return true;
    },
    drop: () => queueMicrotask(() => done(new Killed())),
  };
  return self;
}
