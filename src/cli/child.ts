/**
 * The one long-running command of `run` and `wait`.
 *
 * | state      | `start()`   | `restart()`              | it exits                     | `close()`                  |
 * |------------|-------------|--------------------------|------------------------------|----------------------------|
 * | `stopped`  | → `running` | → `running`              | –                            | → `closed`                 |
 * | `running`  | –           | → `stopping`, then start | → `stopped`, calls `onExit`  | stops its group → `closed` |
 * | `stopping` | –           | joins the one under way  | → `stopped`                  | no start after the stop    |
 * | `closed`   | –           | –                        | –                            | –                          |
 */
import { ProcessGroup, type ProcessExit } from '../action.js';
import { systemClock } from '../core/clock.js';
import { errnoOf } from '../core/errno.js';
import { EXIT } from './exit-code.js';
import { exitCodeOf, STOPPING_SIGNALS, type Session } from './session.js';

/** As `docker stop`, ms. */
export const STOP_TIMEOUT_MS = 10_000;

/** Forwarded to a command in addition to the signals that stop it. */
const OTHER_SIGNALS: readonly NodeJS.Signals[] = ['SIGUSR1', 'SIGUSR2', 'SIGWINCH'];

/** How the command is stopped, and what happens when it ends. */
interface ChildOptions {
  /** Aborts when the program ends; after that, nothing is started. */
  readonly signal: AbortSignal;
  readonly stopSignal: NodeJS.Signals;
  /** How long its process group may take to stop before it is killed, ms. */
  readonly stopTimeoutMs: number;
  /** Called when the command exits without having been stopped. */
  readonly onExit: (exit: ProcessExit) => void;
  /** Called when the command cannot be started. */
  readonly onError: (error: Error) => void;
}

/** A supervised command. */
export class Child {
  readonly #command: readonly string[];
  readonly #options: ChildOptions;
  #group: ProcessGroup | undefined;
  #state: 'stopped' | 'running' | 'stopping' | 'closed' = 'stopped';
  #isClosed = false;
  #restarting: Promise<void> | undefined;

  constructor(command: readonly string[], options: ChildOptions) {
    this.#command = command;
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  start(): void {
    const { signal, onExit, onError } = this.#options;
    if (this.#state !== 'stopped' || signal.aborted) return;
    const [program = '', ...args] = this.#command;
    try {
      this.#group = new ProcessGroup(program, args, { stdio: 'inherit' }, systemClock);
    } catch (error) {
      onError(error as Error);
      return;
    }
    this.#state = 'running';
    const over = (report: () => void): void => {
      if (this.#state !== 'running') return;
      this.#state = 'stopped';
      report();
    };
    this.#group.exited.then(
      (exit) => over(() => onExit(exit)),
      (error: unknown) => over(() => onError(error as Error)),
    );
  }

  /** Signals the command. Has no effect if it is not running. */
  signal(signal: NodeJS.Signals): void {
    if (this.isRunning) this.#group?.signalLeader(signal);
  }

  restart(): Promise<void> {
    this.#restarting ??= this.#restart().finally(() => (this.#restarting = undefined));
    return this.#restarting;
  }

  /** Stops the command and all other processes of its process group. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#state = 'closed';
    await this.#stopGroup();
  }

  async #restart(): Promise<void> {
    if (this.#state === 'running') {
      this.#state = 'stopping';
      await this.#stopGroup();
      if (!this.#isClosed) this.#state = 'stopped';
    }
    this.start();
  }

  async #stopGroup(): Promise<void> {
    const { stopSignal, stopTimeoutMs } = this.#options;
    await this.#group?.stop(stopSignal, stopTimeoutMs);
  }
}

/** A command whose exit ends the program, with the exit code that a shell would return. */
export function superviseCommand(
  command: readonly string[],
  session: Session,
  { stopSignal, stopTimeout }: { readonly stopSignal?: NodeJS.Signals; readonly stopTimeout?: number } = {},
): Child {
  const child = new Child(command, {
    signal: session.signal,
    stopSignal: stopSignal ?? 'SIGTERM',
    stopTimeoutMs: stopTimeout ?? STOP_TIMEOUT_MS,
    onExit: ({ code, signal }) => session.end(exitCodeOf(code, signal)),
    onError: (error) => {
      const isMissing = errnoOf(error) === 'ENOENT';
      const reason = isMissing ? 'no such program' : error.message;
      session.output.log('error', 'error', `cannot start ${command.join(' ')}: ${reason}`);
      session.end(isMissing ? EXIT.notFound : EXIT.notExecutable);
    },
  });
  return session.closeAtEnd(child);
}

/** Forwards signals to the command. While no command runs, a signal that stops processes ends the program. */
export function forwardSignals(child: Child | undefined, session: Session): void {
  session.onSignals([...STOPPING_SIGNALS, ...OTHER_SIGNALS], (signal) => {
    if (child?.isRunning) child.signal(signal);
    else if (STOPPING_SIGNALS.includes(signal)) session.stopBySignal(signal, exitCodeOf(null, signal));
  });
}
