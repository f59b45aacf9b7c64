import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { onTestFinished } from 'vitest';

const PROGRAM = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

/** How a program is started. */
export interface StartOptions {
  /** A command that runs the command after it, as `unshare` does. */
  readonly prefix?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the Node.js of this process. */
  readonly node?: string;
  readonly uid?: number;
  /** Written to its stdin, which is then closed. */
  readonly input?: string;
}

/** The program `resilient-watcher` as a process of its own. It is gone when the test is. */
export class CliProgram {
  readonly child: ChildProcess;
  /** Its exit code, or the signal that killed it. */
  readonly exit: Promise<number | NodeJS.Signals | null>;
  readonly #waiters = new Set<() => void>();
  #stdout = '';
  #stderr = '';
  #isOver = false;

  constructor(args: readonly string[], { prefix = [], env, node, uid, input }: StartOptions = {}) {
    if (!existsSync(PROGRAM)) throw new Error('These tests run the built program: `npm run build` first');
    const [command = '', ...rest] = [...prefix, node ?? process.execPath, PROGRAM, ...args];
    this.child = spawn(command, rest, { env: { ...process.env, ...env }, ...(uid !== undefined && { uid }) });
    this.child.stdin?.on('error', () => undefined);
    this.child.stdin?.end(input ?? '');
    const { stdout, stderr } = this.child;
    stdout?.setEncoding('utf8').on('data', (chunk: string) => this.#add(() => (this.#stdout += chunk)));
    stderr?.setEncoding('utf8').on('data', (chunk: string) => this.#add(() => (this.#stderr += chunk)));
    this.exit = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      // Not `close`: what the program may have left running would hold its pipes open.
      this.child.once('exit', (code, signal) => {
        resolve(code ?? signal);
        this.#add(() => (this.#isOver = true));
      });
    });
    onTestFinished(async () => {
      this.child.kill('SIGKILL');
      await this.exit;
    });
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Resolves with the match when it has printed this, on either stream; rejects when it ends without. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    return this.when(() => pattern.exec(`${this.#stderr}\n${this.#stdout}`) ?? undefined, String(pattern));
  }

  /** Resolves with what `find` finds, looked for whenever something was printed. */
  async when<T>(find: () => T | undefined, wanted: string): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (this.#isOver) throw new Error(`It ended without ${wanted}\n${this.#stderr}\n${this.#stdout}`);
      await new Promise<void>((resolve) => this.#waiters.add(resolve));
    }
  }

  /** Resolves with its exit code and everything it printed. */
  async finished(): Promise<{ code: number | NodeJS.Signals | null; stdout: string; stderr: string }> {
    const code = await this.exit;
    await new Promise<void>((resolve) => {
      if (this.child.stdout?.readableEnded && this.child.stderr?.readableEnded) resolve();
      else this.child.once('close', () => resolve());
    });
    return { code, stdout: this.#stdout, stderr: this.#stderr };
  }

  #add(change: () => unknown): void {
    change();
    for (const waiter of this.#waiters) waiter();
    this.#waiters.clear();
  }
}

/** Runs the program to its end. */
export function runCli(
  args: readonly string[],
  options: StartOptions = {},
): Promise<{ code: number | NodeJS.Signals | null; stdout: string; stderr: string }> {
  return new CliProgram(args, options).finished();
}
