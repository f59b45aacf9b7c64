/**
 * The one long-running command of `run` and `wait`. Once the execution has ended, nothing is started.
 *
 * | state    | `start()` | `stop()`                 | it exits         |
 * |----------|-----------|--------------------------|------------------|
 * | stopped  | → running | –                        | –                |
 * | running  | –         | → stopping               | ends the execution |
 * | stopping | –         | joins the one under way  | → stopped        |
 */
import { errnoOf } from 'resilient-watcher/internal';

import { ProcessGroup } from './action.js';
import { whyNotStarted } from './action/not-started.js';
import { EXIT } from './exit-code.js';
import { exitCodeOf, STOPPING_SIGNALS, type Execution } from './execution.js';

/** As in `docker stop`, ms. */
export const STOP_TIMEOUT_MS = 10_000;

/** Forwarded to a command in addition to the signals that stop it. */
const OTHER_SIGNALS: readonly NodeJS.Signals[] = ['SIGUSR1', 'SIGUSR2', 'SIGWINCH'];

/** How the command is stopped. */
interface StopFlags {
  readonly stopSignal?: NodeJS.Signals;
  /** How long its process group may take to stop before it is killed, ms. */
  readonly stopTimeout?: number;
}

/** A command whose exit ends the program, with the exit code that a shell would return. */
export class Child {
  readonly #command: readonly string[];
  readonly #execution: Execution;
  readonly #flags: StopFlags;
  /** Also undefined while it is stopped. */
  #group: ProcessGroup | undefined;
  #stopping: Promise<void> | undefined;
  /** The last signal that the command got, if it was for a change. */
  #reloadSignal: NodeJS.Signals | undefined;

  /** @param execution ends with the command. */
  constructor(command: readonly string[], execution: Execution, flags: StopFlags = {}) {
    this.#command = command;
    this.#execution = execution;
    this.#flags = flags;
    execution.closeAtEnd(this);
  }

  get isRunning(): boolean {
    return this.#group !== undefined;
  }

  /** Signals the command. Has no effect if it is not running. */
  signal(signal: NodeJS.Signals): void {
    this.#reloadSignal = undefined;
    this.#group?.signalLeader(signal);
  }

  /** Signals the command because of a change. A command without a handler ends. */
  reload(signal: NodeJS.Signals): void {
    this.signal(signal);
    this.#reloadSignal = signal;
  }

  start(): void {
    if (this.isRunning || this.#stopping) return;
    const execution = this.#execution;
    const { io } = execution;
    if (execution.signal.aborted) return;
    const [program = '', ...args] = this.#command;
    try {
      const group = new ProcessGroup(program, args, { stdio: [...io.descriptors], env: io.env });
      this.#group = group;
      execution.output.shareStdout();
      reportGroup(program, group, execution);
      group.exited.then(
        ({ code, signal }) => {
          // Not when it was stopped.
          if (this.#group !== group) return;
          if (signal !== null && signal === this.#reloadSignal) this.#reportUnhandled(program, signal);
          execution.end(exitCodeOf(code, signal));
        },
        (error: unknown) => this.#notStarted(error as Error),
      );
    } catch (error) {
      this.#notStarted(error as Error);
    }
  }

  /** Stops the command and all other processes of its process group, and leaves the execution as it is. */
  stop(): Promise<void> {
    const { stopSignal = 'SIGTERM', stopTimeout = STOP_TIMEOUT_MS } = this.#flags;
    const group = this.#group;
    this.#group = undefined;
    this.#stopping ??= group?.stop(stopSignal, stopTimeout).finally(() => (this.#stopping = undefined));
    return this.#stopping ?? Promise.resolve();
  }

  /** Stops it for good: the execution has ended. */
  close(): Promise<void> {
    return this.stop();
  }

  #reportUnhandled(program: string, signal: NodeJS.Signals): void {
    const advice = 'use --on-change restart, or --on-change with the signal that makes it reload';
    const message = `${program}: ${signal} ends it, so it cannot be told of a change this way; ${advice}`;
    this.#execution.output.log('warn', 'unhandled-signal', message, { program, signal });
  }

  #notStarted(error: Error): void {
    const isMissing = errnoOf(error) === 'ENOENT';
    const [program = ''] = this.#command;
    const reason = whyNotStarted(program, error);
    const exitCode = isMissing ? EXIT.notFound : EXIT.notExecutable;
    this.#execution.end(exitCode, `cannot start ${program}: ${reason}`);
  }
}

/** Prints when a command starts and how it ends. Its arguments may be secret. */
function reportGroup(program: string, { child: { pid }, exited }: ProcessGroup, { output }: Execution): void {
  if (pid === undefined) return;
  output.log('info', 'command-started', `${program}: started with PID ${pid}`, { program, pid });
  exited.then(
    ({ code, signal }) => {
      const how = signal === null ? `exited with code ${code}` : `was killed by ${signal}`;
      output.log('info', 'command-ended', `${program}: PID ${pid} ${how}`, { program, pid, code, signal });
    },
    () => undefined,
  );
}

/** Forwards signals to the command. While no command runs, a signal that stops processes ends the program. */
export function forwardSignals(child: Child | undefined, execution: Execution): void {
  execution.onSignals([...STOPPING_SIGNALS, ...OTHER_SIGNALS], (signal) => {
    if (child?.isRunning) child.signal(signal);
    else if (STOPPING_SIGNALS.includes(signal)) execution.stopBySignal(signal, exitCodeOf(null, signal));
  });
}
