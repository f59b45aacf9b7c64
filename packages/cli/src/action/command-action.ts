import {
  flag,
  isStringMap,
  matching,
  milliseconds,
  nonEmptyString,
  onAbort,
  required,
  resolveOptions,
} from 'resilient-watcher/internal';

import { type Action, actionFailed } from './action.js';
import { SHELL, whyNoShell, whyNotStarted } from './not-started.js';
import { ProcessGroup, type ProcessExit } from './process-group.js';
import { isSignal } from './signal-action.js';
import { environmentOf, type ActionUpdate } from './action-update.js';

/** Options of `commandAction`. */
export interface CommandActionOptions {
  /** The program, or with `shell` a whole command line. */
  readonly command: string;
  /** The arguments of the program; not with `shell`. Default none. */
  readonly args?: readonly string[] | undefined;
  /** Runs `command` with `/bin/sh -c`. Default false. */
  readonly shell?: boolean | undefined;
  /** The working directory; default that of this process. */
  readonly cwd?: string | undefined;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Where its output goes. A file descriptor: both streams go there, such as to 2, stderr. Default `inherit`. */
  readonly output?: 'inherit' | 'ignore' | number | undefined;
  /** The signal that stops the command. Default `SIGTERM`. */
  readonly stopSignal?: NodeJS.Signals | undefined;
  /** How long its process group may take to stop before it is killed, ms. Default 10,000, as in `docker stop`. */
  readonly stopTimeoutMs?: number | undefined;
}

const OPTIONS = {
  command: required(nonEmptyString(undefined)),
  args: matching<readonly string[]>(
    [],
    'an array of strings',
    (value) => Array.isArray(value) && value.every((entry) => typeof entry === 'string'),
  ),
  shell: flag(false),
  cwd: nonEmptyString(undefined),
  env: matching<Readonly<Record<string, string>>>({}, 'an object of strings', isStringMap),
  output: matching<'inherit' | 'ignore' | number>(
    'inherit',
    '"inherit", "ignore" or a file descriptor',
    (value) => value === 'inherit' || value === 'ignore' || (Number.isInteger(value) && Number(value) >= 0),
  ),
  stopSignal: matching<NodeJS.Signals>('SIGTERM', 'the name of a signal', isSignal),
  stopTimeoutMs: milliseconds(10_000),
};

type ResolvedCommandOptions = ReturnType<typeof resolveOptions<typeof OPTIONS>>;

/**
 * Runs a command; exit code 0 is success. The update is in its environment, as `RW_PATH`, `RW_KEYS` (a JSON array),
 * `RW_REVISION` and `RW_CAUSE`, and on its stdin as a JSON document. The command runs in a process group of its own,
 * which is stopped as a whole. Its name is that of the program, without arguments.
 * @throws {TypeError} for an unknown, missing or wrong option, or both `args` and `shell`.
 * @throws {RangeError} for a number out of range.
 */
export function commandAction(options: CommandActionOptions): Action {
  const resolved = resolveOptions('commandAction', options, OPTIONS);
  const { command, args, shell, stopSignal, stopTimeoutMs } = resolved;
  if (shell && args.length > 0) {
    throw new TypeError('commandAction: "args" has no effect with "shell"; put the arguments into "command"');
  }
  const name = shell ? programOf(command) : command;
  return {
    name,
    kind: 'exec',
    async run(update, { signal }) {
      let exit: ProcessExit;
      let stopped: Promise<void> | undefined;
      let forget: (() => void) | undefined;
      try {
        const group = startGroup(resolved, update);
        forget = onAbort(signal, () => {
          stopped = group.stop(stopSignal, stopTimeoutMs);
        });
        exit = await group.exited;
      } catch (cause) {
        throw actionFailed(name, shell ? whyNoShell(cause) : whyNotStarted(command, cause), cause);
      } finally {
        forget?.();
        await stopped;
      }
      if (stopped) throw actionFailed(name, 'it was stopped');
      const { code, signal: killedBy } = exit;
      if (code === 0) return;
      throw actionFailed(
        name,
        killedBy === null ? `it exited with code ${code}` : `it was killed by ${killedBy}`,
      );
    },
  };
}

/** The program that a command line begins with. The rest may hold secrets, and so may what is not a plain word. */
function programOf(commandLine: string): string {
  return /^\s*([\w./+-]+)(?=\s|$)/.exec(commandLine)?.[1] ?? 'sh';
}

function startGroup(options: ResolvedCommandOptions, update: ActionUpdate): ProcessGroup {
  const { command, args, shell, output, cwd, env } = options;
  const group = new ProcessGroup(shell ? SHELL : command, shell ? ['-c', command] : args, {
    cwd,
    env: { ...process.env, ...env, ...environmentOf(update) },
    // The command writes directly to the descriptors of this process, so its output is not buffered here.
    stdio: ['pipe', output, output],
  });
  // Fails when the command exits without reading its stdin.
  group.child.stdin?.on('error', () => undefined);
  group.child.stdin?.end(`${JSON.stringify(update)}\n`);
  return group;
}
