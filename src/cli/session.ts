/** One run of the program: what it prints, when it ends, and with which exit code. */
import { constants } from 'node:os';

import type { Output } from './output.js';

/** Something that is closed when the program ends. */
interface Closable {
  close(): Promise<unknown>;
}

/** Lives from the parsed command line to the exit code. */
export class Session {
  readonly output: Output;
  readonly #ending = new AbortController();
  readonly #open: Closable[] = [];
  #end!: (exitCode: number) => void;
  readonly #ended = new Promise<number>((resolve) => (this.#end = resolve));

  constructor(output: Output) {
    this.output = output;
  }

  /** Aborts when the program is to end. */
  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Closes it at the end, the last one first. */
  closeAtEnd<T extends Closable>(closable: T): T {
    this.#open.push(closable);
    return closable;
  }

  /** Ends the program; only the first call has an effect. */
  end(exitCode: number): void {
    this.#end(exitCode);
  }

  /** Ends the program with 128 + n when one of these signals comes. `graceful` ones end it with 0. */
  endOnSignals(graceful: readonly NodeJS.Signals[]): void {
    for (const signal of graceful) {
      const onSignal = (): void => {
        this.output.log('info', 'signal', `${signal}: stopping`, { signal });
        this.end(0);
      };
      process.on(signal, onSignal);
      this.closeAtEnd({ close: () => Promise.resolve(process.off(signal, onSignal)) });
    }
  }

  /** Resolves with the exit code when the program has ended and everything is closed. */
  async finished(): Promise<number> {
    const exitCode = await this.#ended;
    this.#ending.abort();
    for (const closable of this.#open.splice(0).reverse()) await closable.close();
    return exitCode;
  }
}

/** The exit code of a shell for a process that was killed by a signal. */
export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
}
