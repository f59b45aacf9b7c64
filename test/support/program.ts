/** Programs that tests start. They run the built package, as a user's process does. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Readable } from 'node:stream';

import type { ResilientWatcherOptions } from 'resilient-watcher';
import { onTestFailed, onTestFinished } from 'vitest';

import { checkBuilt } from './built-package.js';
import { interruptThreads } from './interrupt-threads.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
let isBuilt = false;

/** The absolute path of a script, given relative to the repository. */
export function scriptPath(script: string): string {
  if (!isBuilt) checkBuilt(root);
  isBuilt = true;
  return join(root, script);
}

/** Between two turns of the event loop everything is read that had been written to the pipes before the first. */
async function otherStreamRead(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

/** How a program is started. */
export interface ProgramOptions {
  /** A command that runs the command after it, as `unshare` does. */
  readonly prefix?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the Node.js of this process. */
  readonly node?: string;
  readonly uid?: number;
  /** Written to its stdin, which is then closed. Default: stdin stays open. */
  readonly input?: string;
}

/** What a program has done when it is over. */
export interface Outcome {
  /** Its exit code, or the signal that killed it. */
  readonly code: number | NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A script that Node.js runs in a process of its own. */
export class Program {
  readonly child: ChildProcessWithoutNullStreams;
  /** Its exit code, or the signal that killed it. Some of its output may still be to come. */
  readonly exit: Promise<number | NodeJS.Signals | null>;
  readonly #waiters = new Set<() => void>();
  #stdout = '';
  #stderr = '';
  #output = '';
  #isOver = false;

  constructor(script: string, args: readonly string[] = [], options: ProgramOptions = {}) {
    const { prefix = [], env, node = process.execPath, uid, input } = options;
    const [command = '', ...rest] = [...prefix, node, scriptPath(script), ...args];
    const child = spawn(command, rest, {
      env: { ...process.env, ...env },
      ...(uid !== undefined && { uid }),
    });
    this.child = child;
    child.stdin.on('error', () => undefined);
    if (input !== undefined) child.stdin.end(input);
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stdout += chunk;
      this.#output += chunk;
      this.#wake();
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      this.#stderr += chunk;
      this.#output += chunk;
      this.#wake();
    });
    this.exit = new Promise((resolve, reject) => {
      child.once('error', reject);
      // Not `close`: what the program may have left running holds its pipes open.
      child.once('exit', (code, signal) => resolve(code ?? signal));
    });
    child.once('close', () => {
      this.#isOver = true;
      this.#wake();
    });
    onTestFailed(() => console.error(`${[script, ...args].join(' ')} has printed:\n${this.#output}`));
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await this.exit;
    });
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** What it has printed on both streams, in the order in which that arrived. */
  get output(): string {
    return this.#output;
  }

  /** Resolves with the match when it has printed this, on either stream; rejects when it ends without. */
  until(pattern: RegExp): Promise<RegExpExecArray> {
    return this.when(() => pattern.exec(`${this.#stderr}\n${this.#stdout}`) ?? undefined, String(pattern));
  }

  /**
   * Resolves with what `find` finds, called whenever something was printed; rejects when the program ends without. When
   * it resolves, what it printed before that is known, on the other stream as well.
   */
  async when<T>(find: () => T | undefined, wanted: string): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined) {
        await otherStreamRead();
        return found;
      }
      if (this.#isOver) throw new Error(`It ended without ${wanted}\n${this.output}`);
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }

  /** Resolves with its exit code and everything it printed. */
  async finished(): Promise<Outcome> {
    const code = await this.exit;
    await this.when(() => this.#isOver || undefined, 'its end');
    return { code, stdout: this.#stdout, stderr: this.#stderr };
  }

  /** Sends it SIGTERM; resolves with its exit code when it has ended and its output is complete. */
  async terminated(): Promise<Outcome['code']> {
    this.child.kill('SIGTERM');
    return (await this.finished()).code;
  }

  /** Stops it, and resolves when the kernel says that all of its threads stand. */
  async stop(): Promise<void> {
    this.child.kill('SIGSTOP');
    const threads = `/proc/${this.child.pid}/task`;
    const stands = (thread: string): boolean => {
      const state = readFileSync(`${threads}/${thread}/stat`, 'latin1').split(') ')[1] ?? '';
      return state.startsWith('T');
    };
    while (!readdirSync(threads).every(stands)) await nextTurn();
  }

  continue(): void {
    this.child.kill('SIGCONT');
  }

  #wake(): void {
    for (const waiter of this.#waiters) waiter();
    this.#waiters.clear();
  }
}

const CLI = 'packages/cli/bin.js';

/** Starts `resilient-watcher`, with an empty stdin unless there is `input`. */
export function startCli(args: readonly string[], options: ProgramOptions = {}): Program {
  return new Program(CLI, args, { input: '', ...options });
}

/** Runs `resilient-watcher` to its end. */
export function runCli(args: readonly string[], options?: ProgramOptions): Promise<Outcome> {
  return startCli(args, options).finished();
}

/** Starts a program of `examples/`. */
export function startExample(script: string, env: Readonly<Record<string, string>> = {}): Program {
  return new Program(`examples/${script}`, [], { env });
}

/** A line that test/kernel/programs/watch.mjs prints. */
export interface WatchEvent {
  readonly event: string;
  readonly [detail: string]: unknown;
}

/** What watch.mjs prints, be it a process or a worker thread. */
export class Transcript {
  readonly events: WatchEvent[] = [];
  readonly #waiters = new Set<() => void>();
  #errors = '';
  #isOver = false;

  constructor({ stdout, stderr }: { readonly stdout: Readable; readonly stderr: Readable }) {
    createInterface({ input: stdout })
      .on('line', (line) => {
        this.events.push(JSON.parse(line) as WatchEvent);
        this.#wake();
      })
      .on('close', () => {
        this.#isOver = true;
        this.#wake();
      });
    stderr.on('data', (chunk) => (this.#errors += String(chunk)));
  }

  /** The contents reported so far; null for missing. */
  get contents(): unknown[] {
    return this.of('change').map(({ content }) => content);
  }

  of(name: string): WatchEvent[] {
    return this.events.filter(({ event }) => event === name);
  }

  /** Resolves with the first event, printed already or to come, with these details. Rejects when there is none. */
  async until(wanted: Partial<WatchEvent>): Promise<WatchEvent> {
    const fits = (event: WatchEvent): boolean =>
      Object.entries(wanted).every(([detail, value]) => event[detail] === value);
    for (;;) {
      const found = this.events.find(fits);
      if (found) return found;
      if (this.#isOver) throw new Error(`It ended without ${JSON.stringify(wanted)}\n${this.#errors}`);
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }

  #wake(): void {
    for (const waiter of this.#waiters) waiter();
    this.#waiters.clear();
  }
}

export const WATCH = 'test/kernel/programs/watch.mjs';

/** A process that watches a file or a tree. */
export class WatchingProgram extends Program {
  readonly transcript: Transcript;

  /** @param more further arguments of watch.mjs. */
  constructor(
    path: string,
    options: ResilientWatcherOptions = {},
    prefix: readonly string[] = [],
    ...more: readonly string[]
  ) {
    super(WATCH, [path, JSON.stringify(options), ...more], { prefix });
    this.transcript = new Transcript(this.child);
  }

  /** Interrupts the system calls of its threads until `isOver`; the main one ignores that. */
  async interruptThreads(isOver: () => boolean): Promise<void> {
    await interruptThreads(this.child.pid ?? 0, isOver);
  }

  /** Asks it to close its watcher, and nothing else. */
  close(): void {
    this.child.kill('SIGTERM');
  }
}
