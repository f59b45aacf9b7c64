import { closeSync, readdirSync, readlinkSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import { nodeFileSystem, type FileSystem, type FileSystemCalls } from 'resilient-watcher';

import { temporaryName } from '../../src/write/temporary-name.js';
import { errno } from './faulty-file-system.js';

type CallName = keyof FileSystemCalls;

/** What happens at a call. */
export type Fault =
  /** It fails and does nothing. */
  | 'error'
  /** It is done, and reported as failed, as by a server whose answer is lost. */
  | 'error-after'
  /** The process dies before it. */
  | 'crash'
  /** The process dies when it is done. */
  | 'crash-after';

export interface Script {
  /** At which call, counted from 0. */
  readonly at?: number;
  readonly fault?: Fault;
  /** A call by name that always fails with this errno. */
  readonly always?: Partial<Record<CallName, string>>;
  /** Runs after every call that may have changed something: what does a reader see now? */
  readonly afterChange?: () => void;
  /** What is read instead of the kernel's mount table. */
  readonly mountTable?: string;
  /** No write takes more bytes. */
  readonly longestWriteBytes?: number;
}

/** These change nothing that a reader could see. */
const readOnly: ReadonlySet<CallName> = new Set([
  'lstat',
  'stat',
  'fstat',
  'statfs',
  'readlink',
  'readdir',
  'scandir',
  'read',
  'fsync',
  'close',
]);

/** What a process that dies runs next: nothing. */
export class Crash extends Error {
  override readonly name = 'Crash';
}

/** Whether this, or what it is a copy of, is a crash. */
export function isCrash(error: unknown): boolean {
  return error instanceof Error && error.name === 'Crash';
}

/** The real file system, with scripted failures and a record of its calls. */
export class ScriptedFileSystem {
  readonly calls: { readonly name: CallName; readonly args: readonly unknown[] }[] = [];
  #script: Script;
  readonly #open = new Set<number>();
  #dead = false;
  #isReadingTable = false;

  constructor(script: Script = {}) {
    this.#script = script;
  }

  /** Follows this script from now on; its calls are counted anew. */
  follow(script: Script): void {
    this.calls.length = 0;
    this.#script = script;
  }

  /** Whether the script has struck. */
  get struck(): boolean {
    return this.calls.length > (this.#script.at ?? Infinity);
  }

  get names(): CallName[] {
    return this.calls.map(({ name }) => name);
  }

  /** The port. Even its promises make the real calls synchronously, so that nothing is left to chance. */
  get port(): FileSystem & { readonly sync: FileSystemCalls } {
    const names = Object.keys(nodeFileSystem.sync) as CallName[];
    const now =
      (name: CallName) =>
      (...args: unknown[]) =>
        this.#call(name, args);
    const soon =
      (name: CallName) =>
      (...args: unknown[]) =>
        new Promise((resolve) => resolve(this.#call(name, args)));
    return {
      ...Object.fromEntries(names.map((name) => [name, soon(name)])),
      sync: Object.fromEntries(names.map((name) => [name, now(name)])),
    } as unknown as FileSystem & { readonly sync: FileSystemCalls };
  }

  /** What the kernel does for a dead process, and what time does to its name. */
  bury(directory: string): void {
    for (const fd of this.#open) closeSync(fd);
    this.#open.clear();
    buryTemporaries(directory);
  }

  #call(name: CallName, args: unknown[]): unknown {
    if (this.#dead) throw new Crash();
    if (this.#isOfMountTable(name, args)) {
      const { mountTable } = this.#script;
      return this.#real(name, name === 'open' && mountTable !== undefined ? args.with(0, mountTable) : args);
    }
    const { at, fault, always, afterChange } = this.#script;
    const strikes = this.calls.length === at;
    this.calls.push({ name, args: args.map(withoutDescriptor) });
    if (always?.[name]) throw errno(always[name], name);
    if (strikes && fault === 'crash') this.#die();
    if (strikes && fault === 'error') throw errno('EIO', name);
    const answer = this.#real(name, args);
    if (!readOnly.has(name)) afterChange?.();
    if (strikes && fault === 'crash-after') this.#die();
    if (strikes && fault === 'error-after') throw errno('EIO', name);
    return answer;
  }

  #real(name: CallName, args: unknown[]): unknown {
    const { longestWriteBytes = Infinity } = this.#script;
    if (name === 'write') args = args.with(3, Math.min(args[3] as number, longestWriteBytes));
    const answer = (nodeFileSystem.sync[name] as (...args: unknown[]) => unknown)(...args);
    if (name === 'open') this.#open.add(answer as number);
    if (name === 'close') this.#open.delete(args[0] as number);
    return answer;
  }

  /** The kernel's own table is no part of a script: it is read now and then. */
  #isOfMountTable(name: CallName, [place]: readonly unknown[]): boolean {
    if (typeof place === 'string') this.#isReadingTable = name === 'open' && place === '/proc/self/mountinfo';
    return this.#isReadingTable;
  }

  #die(): never {
    this.#dead = true;
    throw new Crash();
  }
}

/** The path by name, of one that leads through an open descriptor. */
export function withoutDescriptor<T>(path: T): T {
  if (typeof path !== 'string') return path;
  return path.replace(/^\/proc\/self\/fd\/\d+/, (link) => readlinkSync(link)) as T;
}

/** The real file system with some calls of one's own, and no way to make calls at once. */
export function slowFileSystem(calls: Partial<FileSystem>): FileSystem {
  return { ...nodeFileSystem, ...calls, sync: undefined } as unknown as FileSystem;
}

/** A process of this machine that is gone: no pid is that high. */
const SOMEBODY_DEAD = 2 ** 22 + 1;

/** Gives the unfinished files of this process to a dead one. */
function buryTemporaries(directory: string): void {
  for (const name of readdirSync(directory)) {
    const kind = /^(\.rw|\.\.data_tmp)-/.exec(name);
    if (!kind) continue;
    renameSync(join(directory, name), join(directory, nameOfTheDead(kind[1] === '.rw' ? 'file' : 'link')));
  }
}

/** The name of what a process left that is gone. */
export function nameOfTheDead(kind: 'file' | 'link'): string {
  const [, boot = '', namespace = ''] = /-([0-9a-f]+)\.([0-9a-z_]+)\./.exec(temporaryName(kind)) ?? [];
  return temporaryName(kind, { boot, namespace, pid: SOMEBODY_DEAD, started: '1' });
}
