import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Readable } from 'node:stream';

import type { ResilientWatcherOptions } from 'resilient-watcher';
import { onTestFinished } from 'vitest';

/** Where a program of the kernel tests is. They run the built package, as a user's process does. */
export function programPath(name: string): string {
  const built = fileURLToPath(new URL('../../dist/index.js', import.meta.url));
  if (!existsSync(built)) throw new Error('The kernel tests run the built package: `npm run build` first');
  return fileURLToPath(new URL(`../kernel/programs/${name}.mjs`, import.meta.url));
}

/** A line of watch.mjs. */
export interface Told {
  readonly event: string;
  readonly [detail: string]: unknown;
}

/** What watch.mjs prints, wherever it runs. */
export class Transcript {
  readonly told: Told[] = [];
  readonly #waiters = new Set<() => void>();
  #errors = '';
  #over = false;

  constructor(stdout: Readable, stderr: Readable) {
    createInterface({ input: stdout })
      .on('line', (line) => {
        this.told.push(JSON.parse(line) as Told);
        this.#wake();
      })
      .on('close', () => {
        this.#over = true;
        this.#wake();
      });
    stderr.on('data', (chunk) => (this.#errors += String(chunk)));
  }

  /** The contents reported so far; null for missing. */
  get contents(): unknown[] {
    return this.of('change').map(({ content }) => content);
  }

  of(event: string): Told[] {
    return this.told.filter((told) => told.event === event);
  }

  /** Resolves with the first line, said already or to come, that bears these details. Rejects when there is none. */
  async until(wanted: Partial<Told>): Promise<Told> {
    const fits = (told: Told): boolean =>
      Object.entries(wanted).every(([detail, value]) => told[detail] === value);
    for (;;) {
      const found = this.told.find(fits);
      if (found) return found;
      if (this.#over) throw new Error(`It ended without ${JSON.stringify(wanted)}\n${this.#errors}`);
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }

  #wake(): void {
    for (const waiter of this.#waiters) waiter();
    this.#waiters.clear();
  }
}

/** A child process running a program; it is gone when the test is. */
export class Program {
  readonly child: ChildProcess;
  /** Its exit code, or the signal that killed it. */
  readonly exit: Promise<number | string | null>;

  /** @param prefix a command that runs the command after it, as `unshare` does. */
  constructor(name: string, args: readonly string[], prefix: readonly string[] = []) {
    const [command = '', ...rest] = [...prefix, process.execPath, programPath(name), ...args];
    const child = spawn(command, rest, { stdio: 'pipe' });
    this.child = child;
    this.exit = new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code, signal) => resolve(signal ?? code));
    });
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await this.exit;
    });
  }

  /** Stops it, and resolves when the kernel says that it stands. */
  async stop(): Promise<void> {
    this.child.kill('SIGSTOP');
    const state = (): string => readFileSync(`/proc/${this.child.pid}/stat`, 'latin1').split(') ')[1] ?? '';
    while (!state().startsWith('T')) await new Promise((resolve) => setImmediate(resolve));
  }

  continue(): void {
    this.child.kill('SIGCONT');
  }
}

/** A child process that watches a file or a tree. */
export class WatchingProgram extends Program {
  readonly transcript: Transcript;

  /** @param more further arguments of watch.mjs. */
  constructor(
    path: string,
    options: ResilientWatcherOptions = {},
    prefix: readonly string[] = [],
    ...more: readonly string[]
  ) {
    super('watch', [path, JSON.stringify(options), ...more], prefix);
    const { stdout, stderr } = this.child;
    if (!stdout || !stderr) throw new Error('It has no pipes');
    this.transcript = new Transcript(stdout, stderr);
  }

  /**
   * Interrupts the system calls of its threads, until `over`. Which thread is which cannot be told from outside, so each
   * gets the signal in turn; the main one makes nothing of it.
   */
  async interruptThreads(over: () => boolean): Promise<void> {
    const { pid } = this.child;
    while (!over()) {
      for (const thread of readdirSync(`/proc/${pid}/task`).map(Number)) {
        if (thread !== pid) process.kill(thread, 'SIGWINCH');
        // A signal that is still pending when the next is sent swallows that one.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  /** Asks it to close its watcher, and nothing else. */
  close(): void {
    this.child.kill('SIGTERM');
  }
}
