import { spawn, type ChildProcess } from 'node:child_process';

import { onAbort } from '../core/abort.js';
import { systemClock, type Clock } from '../core/clock.js';
import { errnoOf } from '../core/errno.js';
import { ActionError } from '../core/errors.js';
import type { Action } from './action.js';
import { environmentOf } from './update.js';

/** Options of `commandAction`. */
export interface CommandActionOptions {
  /** The program, or with `shell` a whole command line. */
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** Runs `command` with `/bin/sh -c`. Default false. */
  readonly shell?: boolean | undefined;
  readonly cwd?: string | undefined;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Where its output goes. `stderr`: both streams to the stderr of this process. Default `inherit`. */
  readonly output?: 'inherit' | 'stderr' | 'ignore' | undefined;
  /** The signal that stops it. Default `SIGTERM`. */
  readonly stopSignal?: NodeJS.Signals | undefined;
  /** How long after that its whole process group is killed, ms. Default 10 000, as in `docker stop`. */
  readonly stopTimeoutMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

/**
 * Runs a command; exit code 0 is success. It gets the update in `RW_PATH`, `RW_KEYS`, `RW_REVISION` and `RW_CAUSE`
 * and as a JSON document on stdin. It runs in a process group of its own, which is stopped as a whole.
 */
export function commandAction(options: CommandActionOptions): Action {
  const { command, args = [], shell = false, stopSignal = 'SIGTERM', stopTimeoutMs = 10_000 } = options;
  const { clock = systemClock } = options;
  const name = JSON.stringify([command, ...args].join(' '));
  return {
    name,
    run: (update, { signal }) =>
      new Promise<void>((resolve, reject) => {
        const child = spawn(shell ? '/bin/sh' : command, shell ? ['-c', command] : args, {
          cwd: options.cwd,
          env: { ...process.env, ...options.env, ...environmentOf(update) },
          stdio: stdioOf(options.output ?? 'inherit'),
          detached: true,
        });
        // A command that does not read its stdin closes it.
        child.stdin?.on('error', () => undefined);
        child.stdin?.end(`${JSON.stringify(update)}\n`);
        let kill: { cancel(): void } | undefined;
        const forget = onAbort(signal, () => {
          signalGroup(child, stopSignal);
          kill = clock.schedule(() => signalGroup(child, 'SIGKILL'), stopTimeoutMs);
        });
        const end = (error?: ActionError): void => {
          forget();
          kill?.cancel();
          // Processes that it left in its group would outlive the stop.
          if (signal.aborted) signalGroup(child, 'SIGKILL');
          if (error) reject(error);
          else resolve();
        };
        child.on('error', (cause) => end(notStarted(name, cause)));
        child.on('exit', (code, killedBy) =>
          end(code === 0 ? undefined : notSucceeded(name, code, killedBy)),
        );
      }),
  };
}

/** Signals a child with everything that it started in its process group. A group that is gone is ignored. */
export function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    if (errnoOf(error) !== 'ESRCH') throw error;
  }
}

function stdioOf(output: 'inherit' | 'stderr' | 'ignore'): ('pipe' | 'inherit' | 'ignore' | number)[] {
  return output === 'stderr' ? ['pipe', 2, 2] : ['pipe', output, output];
}

function notStarted(name: string, cause: Error): ActionError {
  const reason = errnoOf(cause) === 'ENOENT' ? 'no such program; check the name and PATH' : cause.message;
  return new ActionError('ERR_ACTION_FAILED', `Action ${name} failed: ${reason}`, { cause });
}

function notSucceeded(name: string, code: number | null, killedBy: NodeJS.Signals | null): ActionError {
  const reason = killedBy === null ? `it exited with code ${code}` : `it was killed by ${killedBy}`;
  return new ActionError('ERR_ACTION_FAILED', `Action ${name} failed: ${reason}`);
}
