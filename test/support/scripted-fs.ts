import { closeSync } from 'node:fs';

import type { FileSystem } from '../../src/core/ports/file-system.js';
import { errno } from './errno.js';
import { fsWith, withoutDescriptor, type Called, type CallName, type Place } from './intercepted-fs.js';

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
  /** No write takes more bytes. */
  readonly longestWriteBytes?: number;
}

/** These change nothing that a reader could see. */
const readOnly: ReadonlySet<CallName> = new Set<CallName>([
  'lstat',
  'stat',
  'fstat',
  'statfs',
  'readlink',
  'readdir',
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
export class ScriptedFs {
  readonly calls: { readonly name: CallName; readonly args: readonly unknown[] }[] = [];
  /** To be given to a write. */
  readonly fs: FileSystem;
  readonly #script: Script;
  readonly #open = new Set<number>();
  #dead = false;

  constructor(script: Script = {}, place?: Place) {
    this.#script = script;
    this.fs = fsWith({ each: (call) => this.#answer(call) }, place);
  }

  /** Whether the script has struck. */
  get struck(): boolean {
    return this.calls.length > (this.#script.at ?? Infinity);
  }

  get names(): CallName[] {
    return this.calls.map(({ name }) => name);
  }

  /** What the kernel does for a dead process. */
  bury(): void {
    for (const fd of this.#open) closeSync(fd);
    this.#open.clear();
  }

  #answer(call: Called): unknown {
    if (this.#dead) throw new Crash();
    const { name, args } = call;
    const { at, fault, always, afterChange } = this.#script;
    const strikes = this.calls.length === at;
    this.calls.push({ name, args: args.map(withoutDescriptor) });
    if (always?.[name]) throw errno(always[name], name);
    if (strikes && fault === 'crash') this.#die();
    if (strikes && fault === 'error') throw errno('EIO', name);
    const answer = this.#make(call);
    if (!readOnly.has(name)) afterChange?.();
    if (strikes && fault === 'crash-after') this.#die();
    if (strikes && fault === 'error-after') throw errno('EIO', name);
    return answer;
  }

  #make({ name, args, make }: Called): unknown {
    const { longestWriteBytes = Infinity } = this.#script;
    const answer =
      name === 'write' ? make(args.with(3, Math.min(args[3] as number, longestWriteBytes))) : make();
    if (name === 'open') this.#open.add(answer as number);
    if (name === 'close') this.#open.delete(args[0] as number);
    return answer;
  }

  #die(): never {
    this.#dead = true;
    throw new Crash();
  }
}
