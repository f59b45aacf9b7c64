/** One run of the program, or of one of its rules: its output, its open components, and its exit code. */
import { constants } from 'node:os';

import type { ComponentHandle } from 'resilient-watcher';

import { EXIT } from './exit-code.js';
import type { Io } from './io.js';
import type { Output } from './output.js';

/** The signals that stop a process. Images of nginx are stopped with QUIT. */
export const STOPPING_SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'];

/** An object that is closed when the execution ends. */
interface Closable {
  close(): unknown;
}

/** Exists from the parsed command line to the exit code. */
export class Execution {
  readonly output: Output;
  readonly io: Io;
  readonly #parent: Execution | undefined;
  readonly #ending = new AbortController();
  readonly #open = new Set<Closable>();
  #end!: (exitCode: number) => void;
  /** Resolves to the exit code when the program is to end. */
  readonly ended = new Promise<number>((resolve) => (this.#end = resolve));

  constructor(output: Output, io: Io, parent?: Execution) {
    this.output = output;
    this.io = io;
    this.#parent = parent;
  }

  /** Aborts when the execution is to end. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** The open components, including those of its parts, except parts that are being closed. */
  get components(): ComponentHandle[] {
    return [...this.#open].flatMap((closable) => {
      if (closable instanceof Execution) return closable.signal.aborted ? [] : closable.components;
      return 'status' in closable ? [closable as Closable & ComponentHandle] : [];
    });
  }

  /** Closes the object when the execution ends, in reverse order of these calls. */
  closeAtEnd<T extends Closable>(closable: T): T {
    this.#open.add(closable);
    return closable;
  }

  /** A part of the execution that can be closed separately. Ending the part ends the program. */
  fork(): Execution {
    return this.closeAtEnd(new Execution(this.output, this.io, this));
  }

  /** Ends the program; only the first call has an effect. Prints the failure that is the reason. */
  end(exitCode: number, failure?: string): void {
    if (failure !== undefined) this.output.log('error', 'error', failure);
    if (this.#parent) this.#parent.end(exitCode);
    else this.#end(exitCode);
  }

  /** Calls `listener` for these signals until the process exits, so that a signal does not interrupt closing. */
  onSignals(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): void {
    for (const signal of signals) this.io.signals.on(signal, listener);
  }

  /** Called before other programs are started: as PID 1 this one also inherits the processes that those leave behind. */
  async becomeInit(): Promise<void> {
    if (!this.io.becomeInit) return;
    await this.io.becomeInit();
    const advice = 'Use Node.js 22.15 or later with /bin/sh, or tini';
    this.output.log('warn', 'init', `running as PID 1 without an init: orphans are not reaped. ${advice}`);
  }

  /** Ends the program on a signal that stops processes. */
  endOnSignals(exitCodeFor: (signal: NodeJS.Signals) => number = () => EXIT.ok): void {
    this.onSignals(STOPPING_SIGNALS, (signal) => this.stopBySignal(signal, exitCodeFor(signal)));
  }

  /** Ends the program and prints the signal as the reason. */
  stopBySignal(signal: NodeJS.Signals, exitCode: number): void {
    this.output.log('info', 'signal', `${signal}: stopping`, { signal });
    this.end(exitCode);
  }

  /**
   * Closes everything: all parts are told to stop at once, and then each is waited for. May be called again before it has
   * ended, since the program also waits for a part that is already being closed.
   */
  async close(): Promise<void> {
    this.#abort();
    for (const closable of [...this.#open].reverse()) await closable.close();
    this.#open.clear();
    if (this.#parent) this.#parent.#open.delete(this);
  }

  /** Resolves to the exit code once the program has ended and everything is closed. */
  async finished(): Promise<number> {
    const exitCode = await this.ended;
    await this.close();
    return exitCode;
  }

  #abort(): void {
    this.#ending.abort();
    for (const closable of this.#open) if (closable instanceof Execution) closable.#abort();
  }
}

/** The exit code of a shell for a process that was killed by a signal. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}
