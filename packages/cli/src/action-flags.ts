/** The flags of `watch` and `run` that choose the actions and how they run. */
import type { Command } from 'commander';

import {
  commandAction,
  ReloadAction,
  signalAction,
  webhookAction,
  type Action,
  type CommandActionOptions,
} from './action.js';
import { delay, duration, each, httpMethod, refuseUnused, signalName, text } from './arguments.js';
import { STOP_TIMEOUT_MS } from './child.js';
import { EXIT, UsageError } from './exit-code.js';
import type { Execution } from './execution.js';

/** How actions run, of any kind; undefined means the default of the library. */
export interface RunFlags {
  readonly check?: string;
  readonly splay?: number;
  readonly cooldown?: number;
  readonly timeout?: number;
  readonly stopSignal?: NodeJS.Signals;
  readonly stopTimeout?: number;
  readonly exitOnError?: true;
}

/** The actions. */
export interface ActionFlags extends RunFlags {
  readonly exec?: readonly string[];
  readonly signal?: readonly NodeJS.Signals[];
  readonly pidFile?: string;
  readonly process?: string;
  readonly webhook?: readonly string[];
  readonly webhookMethod?: string;
  readonly webhookCa?: string;
  readonly webhookCert?: string;
  readonly webhookKey?: string;
}

/** Added to the time that a run may take to stop, because the kernel needs time to end its processes, ms. */
const STOP_LEEWAY_MS = 5_000;

/** Adds the flags for how actions run. */
export function addRunFlags(command: Command): Command {
  return command
    .optionsGroup('How actions run:')
    .option('--check <sh>', 'run this first; if it fails, do nothing until the next change', text)
    .option(
      '--splay <duration>',
      'wait a random time, up to this, before acting, so that not all pods act at once',
      delay,
    )
    .option(
      '--cooldown <duration>',
      'wait this long after a success; the newest of the changes meanwhile wins',
      delay,
    )
    .option('--timeout <duration>', 'stop an action that takes longer (default: 30s)', duration)
    .option(
      '--stop-signal <signal>',
      'the signal that asks a command to stop (default: TERM)',
      (given: string) => signalName(given),
    )
    .option(
      '--stop-timeout <duration>',
      'how long a command and its children may take to stop before they are killed (default: 10s)',
      delay,
    )
    .option('--exit-on-error', 'exit with 1 when an action fails, instead of trying again');
}

/** Adds the flags that choose the actions. */
export function addActionFlags(command: Command): Command {
  command
    .optionsGroup('What to do on a change:')
    .option('--exec <sh>', 'run this with /bin/sh -c (repeatable)', each(text))
    .option(
      '--signal <signal>',
      'send this signal (repeatable) to:',
      each((given) => signalName(given)),
    )
    .option('--pid-file <file>', '  the process whose ID is in this file', text)
    .option('--process <name>', '  the topmost process with this name', text)
    .option('--webhook <url>', 'send the change to this URL as JSON (repeatable)', each(text))
    .option('--webhook-method <method>', '  with this method (default: POST)', httpMethod)
    .option('--webhook-ca <file>', '  whose server is verified by these CAs, PEM', text)
    .option('--webhook-cert <file>', '  with this client certificate, PEM', text)
    .option('--webhook-key <file>', '  and its key, PEM', text);
  return addRunFlags(command);
}

/**
 * A component that runs these actions as the flags say. It is closed with the execution.
 * @param paths tell it from other rules with the same action, in logs and metrics.
 */
export function reloadActionOf(
  action: readonly Action[],
  flags: RunFlags,
  execution: Execution,
  paths: readonly string[] = [],
): ReloadAction {
  const { check, splay, cooldown, timeout, stopTimeout = STOP_TIMEOUT_MS, exitOnError } = flags;
  const reload = execution.closeAtEnd(
    new ReloadAction({
      action,
      name: paths.length > 0 ? `${action[0]?.name ?? ''} for ${paths.join(', ')}` : undefined,
      check: check === undefined ? undefined : shellAction(check, flags, execution),
      splayMs: splay,
      cooldownMs: cooldown,
      timeoutMs: timeout,
      stopTimeoutMs: stopTimeout + STOP_LEEWAY_MS,
      maxAttempts: exitOnError ? 1 : undefined,
      signal: execution.signal,
      clock: execution.io.clock,
    }),
  );
  if (exitOnError) {
    for (const event of ['failed', 'rejected'] as const)
      reload.on(event, ({ error }) => execution.end(EXIT.failed, error.message));
  }
  return reload;
}

/**
 * The actions that the flags choose, in the order of the help; empty if there are none.
 * @throws {ExitError} for flags that cannot be combined, and a wrong URL.
 */
export function actionsOf(flags: ActionFlags, command: readonly string[], execution: Execution): Action[] {
  const { exec = [], webhook = [] } = flags;
  const [program, ...args] = command;
  const actions = exec.map((line) => shellAction(line, flags, execution));
  if (program !== undefined) {
    actions.unshift(commandAction({ command: program, args, ...commandOptions(flags, execution) }));
  }
  actions.push(...signalsOf(flags), ...webhook.map((url) => webhookOf(url, flags)));
  if (webhook.length === 0)
    refuseUnused(flags, ['webhookMethod', 'webhookCa', 'webhookCert', 'webhookKey'], '--webhook');
  if (actions.length > 0) return actions;
  const unused = [
    'check',
    'splay',
    'cooldown',
    'timeout',
    'stopSignal',
    'stopTimeout',
    'exitOnError',
  ] as const;
  refuseUnused(flags, unused, 'an action: a command after --, --exec, --signal or --webhook');
  return [];
}

function shellAction(command: string, flags: RunFlags, execution: Execution): Action {
  return commandAction({ command, shell: true, ...commandOptions(flags, execution) });
}

/** Output goes to stderr, because stdout may be read as events. */
function commandOptions(
  { stopSignal, stopTimeout: stopTimeoutMs }: RunFlags,
  { io: { env, descriptors } }: Execution,
): Partial<CommandActionOptions> {
  return { env: { ...env } as Record<string, string>, output: descriptors[2], stopSignal, stopTimeoutMs };
}

/** The URL is not quoted, since it may have credentials. */
function webhookOf(url: string, flags: ActionFlags): Action {
  const { webhookMethod: method, webhookCa: caFile, webhookCert: certFile, webhookKey: keyFile } = flags;
  if (!/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : '')) {
    throw new UsageError('--webhook must be an http(s) URL');
  }
  if ((certFile === undefined) !== (keyFile === undefined)) {
    throw new UsageError('--webhook-cert and --webhook-key belong together');
  }
  if (new URL(url).protocol === 'http:' && (caFile ?? certFile) !== undefined) {
    throw new UsageError('--webhook-ca and --webhook-cert need a --webhook that is an https URL');
  }
  return webhookAction({ url, method, caFile, certFile, keyFile });
}

function signalsOf({ signal: signals, pidFile, process: processName }: ActionFlags): Action[] {
  if (!signals) {
    refuseUnused({ pidFile, process: processName }, ['pidFile', 'process'], '--signal, as in --signal HUP');
    return [];
  }
  if ((pidFile === undefined) === (processName === undefined)) {
    throw new UsageError('--signal needs either --pid-file or --process');
  }
  const target = pidFile === undefined ? { processName: processName ?? '' } : { pidFile };
  return signals.map((signal) => signalAction(signal, target));
}
