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

/** Passed on to a command beside those that ask it to stop. */
const OTHER_SIGNALS: readonly NodeJS.Signals[] = ['SIGUSR1', 'SIGUSR2', 'SIGWINCH'];

/** How it is stopped, and what follows its end. */
export interface ChildOptions {
  /** Aborts when the program ends: from then on nothing is started. */
  readonly signal: AbortSignal;
  readonly stopSignal: NodeJS.Signals;
  /** How long its process group may take to stop before it is killed, ms. */
  readonly stopTimeoutMs: number;
  /** Called for an exit that was not asked for. */
  readonly onExit: (exit: ProcessExit) => void;
  /** Called when it could not be started. */
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
    const over = (told: () => void): void => {
      if (this.#state !== 'running') return;
      this.#state = 'stopped';
      told();
    };
    this.#group.exited.then(
      (exit) => over(() => onExit(exit)),
      (error: unknown) => over(() => onError(error as Error)),
    );
  }

  /** Signals the command; nothing happens when it is not running. */
  signal(signal: NodeJS.Signals): void {
    if (this.isRunning) this.#group?.signalLeader(signal);
  }

  restart(): Promise<void> {
    this.#restarting ??= this.#restart().finally(() => (this.#restarting = undefined));
    return this.#restarting;
  }

  /** Stops it, with what it has left behind in its process group. */
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

/** A command whose end is that of the program, with the exit code a shell would give. */
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

/** The command decides what a signal means. While none runs, a signal that asks to stop ends the program. */
export function forwardSignals(child: Child | undefined, session: Session): void {
  session.onSignals([...STOPPING_SIGNALS, ...OTHER_SIGNALS], (signal) => {
    if (child?.isRunning) child.signal(signal);
    else if (STOPPING_SIGNALS.includes(signal)) session.stopBySignal(signal, exitCodeOf(null, signal));
  });
}
