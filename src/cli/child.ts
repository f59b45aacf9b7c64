/**
 * The one long-running command of `run`.
 *
 * | state      | `start()`   | `restart()`                   | it exits                       | `stop()`           |
 * |------------|-------------|-------------------------------|--------------------------------|--------------------|
 * | `stopped`  | → `running` | → `running`                   | –                              | –                  |
 * | `running`  | –           | → `stopping`, then starts     | → `stopped`, the exit is told  | → `stopping`       |
 * | `stopping` | –           | –                             | → `stopped`                    | the same promise   |
 */
import { spawn, type ChildProcess } from 'node:child_process';

import { systemClock, type Scheduled } from '../core/clock.js';
import { signalGroup } from '../action.js';

/** How a child ended. */
interface ChildExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** How it is stopped. */
interface ChildOptions {
  readonly stopSignal: NodeJS.Signals;
  /** How long after that its process group is killed, ms. */
  readonly stopTimeoutMs: number;
  /** Called when it exits by itself. */
  readonly onExit: (exit: ChildExit) => void;
  /** It could not be started. */
  readonly onError: (error: Error) => void;
}

/** A supervised command. */
export class Child {
  readonly #command: readonly string[];
  readonly #options: ChildOptions;
  #process: ChildProcess | undefined;
  #stopping: Promise<void> | undefined;

  constructor(command: readonly string[], options: ChildOptions) {
    this.#command = command;
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#process !== undefined;
  }

  start(): void {
    if (this.#process) return;
    const [program = '', ...args] = this.#command;
    // A group of its own, so that it is stopped with all that it has started.
    const child = spawn(program, args, { stdio: 'inherit', detached: true });
    this.#process = child;
    child.once('error', (error) => {
      if (this.#process === child) this.#process = undefined;
      this.#options.onError(error);
    });
    child.once('exit', (code, signal) => {
      this.#process = undefined;
      if (!this.#stopping) this.#options.onExit({ code, signal });
    });
  }

  /** Sends it a signal; nothing happens when it is not running. */
  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal);
  }

  async restart(): Promise<void> {
    await this.stop();
    this.start();
  }

  /** Stops it with its process group, and waits until it has ended. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop().finally(() => (this.#stopping = undefined));
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    const child = this.#process;
    if (!child) return;
    const { stopSignal, stopTimeoutMs } = this.#options;
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    signalGroup(child, stopSignal);
    const kill: Scheduled = systemClock.schedule(() => signalGroup(child, 'SIGKILL'), stopTimeoutMs);
    await ended;
    kill.cancel();
    signalGroup(child, 'SIGKILL');
  }
}
