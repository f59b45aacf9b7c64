/** One run of the program, or of one rule of it: what it prints, what it has open, and how it ends. */
import { constants } from 'node:os';

import { EXIT } from './exit-code.js';
import type { Output } from './output.js';

/** These ask a process to stop. QUIT is what images of nginx are stopped with. */
export const STOPPING_SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'];

/** Something that is closed at the end. */
interface Closable {
  close(): Promise<unknown>;
}

/** A component of the library, as health checks and `/status` see it. */
export interface SessionComponent extends Closable {
  readonly kind: string;
  readonly name: string;
  readonly state: string;
  status(): { readonly name: string; readonly state: string };
  start(): Promise<void>;
}

/** Lives from the parsed command line to the exit code. */
export class Session {
  readonly output: Output;
  readonly #parent: Session | undefined;
  readonly #ending = new AbortController();
  readonly #open = new Set<Closable>();
  #end!: (exitCode: number) => void;
  readonly #ended = new Promise<number>((resolve) => (this.#end = resolve));

  constructor(output: Output, parent?: Session) {
    this.output = output;
    this.#parent = parent;
  }

  /** Aborts when it is to end. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** The components that are open, those of its parts included. */
  get components(): SessionComponent[] {
    return [...this.#open].flatMap((closable) => {
      if (closable instanceof Session) return closable.components;
      return 'status' in closable ? [closable as SessionComponent] : [];
    });
  }

  /** Closes it at the end, the last one first. */
  closeAtEnd<T extends Closable>(closable: T): T {
    this.#open.add(closable);
    return closable;
  }

  /** Calls this at the end. */
  callAtEnd(callback: () => unknown): void {
    this.closeAtEnd({ close: () => Promise.resolve(callback()) });
  }

  /** A part that can be closed by itself. To end it is to end the program. */
  fork(): Session {
    return this.closeAtEnd(new Session(this.output, this));
  }

  /** Ends the program; the first call counts. */
  end(exitCode: number): void {
    if (this.#parent) this.#parent.end(exitCode);
    else this.#end(exitCode);
  }

  /** Calls `listener` for these signals until the process exits: one that comes while it ends must not cut that short. */
  onSignals(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): void {
    for (const signal of signals) process.on(signal, listener);
  }

  /** Ends the program with 0 when it is asked to stop. */
  endOnSignals(): void {
    this.onSignals(STOPPING_SIGNALS, (signal) => this.stopBySignal(signal, EXIT.ok));
  }

  /** Ends the program, and says that it was asked to. */
  stopBySignal(signal: NodeJS.Signals, exitCode: number): void {
    this.output.log('info', 'signal', `${signal}: stopping`, { signal });
    this.end(exitCode);
  }

  /** Closes everything. */
  async close(): Promise<void> {
    if (this.#parent) this.#parent.#open.delete(this);
    this.#ending.abort();
    for (const closable of [...this.#open].reverse()) await closable.close();
    this.#open.clear();
  }

  /** Resolves with the exit code when the program has ended and everything is closed. */
  async finished(): Promise<number> {
    const exitCode = await this.#ended;
    await this.close();
    return exitCode;
  }
}

/** The exit code of a shell for a process that was killed by a signal. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}
