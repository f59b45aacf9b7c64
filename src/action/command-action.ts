import { onAbort } from '../core/abort.js';
import { systemClock, type Clock } from '../core/clock.js';
import { errnoOf } from '../core/errno.js';
import { ActionError } from '../core/errors.js';
import { redact } from '../core/redaction.js';
import type { Action } from './action.js';
import { ProcessGroup, type ProcessExit } from './process-group.js';
import { environmentOf, type ActionUpdate } from './update.js';

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
  /** The signal that asks it to stop. Default `SIGTERM`. */
  readonly stopSignal?: NodeJS.Signals | undefined;
  /** How long its process group may take to stop before it is killed, ms. Default 10 000, as `docker stop`. */
  readonly stopTimeoutMs?: number | undefined;
  readonly clock?: Clock | undefined;
}

/**
 * Runs a command; exit code 0 is success. The update is in its environment, as `RW_PATH`, `RW_KEYS`, `RW_REVISION` and
 * `RW_CAUSE`, and on its stdin as a JSON document. It runs in a process group of its own, which is stopped as a whole.
 */
export function commandAction(options: CommandActionOptions): Action {
  const { command, args = [], stopSignal = 'SIGTERM', stopTimeoutMs = 10_000 } = options;
  const name = redact(JSON.stringify([command, ...args].join(' ')));
  return {
    name,
    kind: 'exec',
    async run(update, { signal }) {
      let exit: ProcessExit;
      let stopped: Promise<void> | undefined;
      let forget: (() => void) | undefined;
      try {
        const group = startGroup(options, update);
        forget = onAbort(signal, () => {
          stopped = group.stop(stopSignal, stopTimeoutMs);
        });
        exit = await group.exited;
      } catch (cause) {
        throw notStarted(name, cause);
      } finally {
        forget?.();
        await stopped;
      }
      if (stopped) throw new ActionError('ERR_ACTION_FAILED', `Action ${name} failed: it was stopped`);
      if (exit.code !== 0) throw notSucceeded(name, exit);
    },
  };
}

function startGroup(options: CommandActionOptions, update: ActionUpdate): ProcessGroup {
  const { command, args = [], shell = false, output = 'inherit', cwd, env, clock = systemClock } = options;
  const group = new ProcessGroup(
    shell ? '/bin/sh' : command,
    shell ? ['-c', command] : args,
    {
      cwd,
      env: { ...process.env, ...env, ...environmentOf(update) },
      // The command writes to the descriptors of this process: however much it prints, nothing is buffered here.
      stdio: output === 'stderr' ? ['pipe', 2, 2] : ['pipe', output, output],
    },
    clock,
  );
  // A command that does not read its stdin closes it.
  group.child.stdin?.on('error', () => undefined);
  group.child.stdin?.end(`${JSON.stringify(update)}\n`);
  return group;
}

function notStarted(name: string, cause: unknown): ActionError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const explained = errnoOf(cause) === 'ENOENT' ? 'no such program; check its name, PATH and cwd' : reason;
  return new ActionError('ERR_ACTION_FAILED', `Action ${name} failed: ${explained}`, { cause });
}

function notSucceeded(name: string, { code, signal }: ProcessExit): ActionError {
  const reason = signal === null ? `it exited with code ${code}` : `it was killed by ${signal}`;
  return new ActionError('ERR_ACTION_FAILED', `Action ${name} failed: ${reason}`);
}
