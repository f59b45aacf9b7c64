/** The flags of `watch` and `run` that choose the actions and how they run. */
import { Option, type Command } from 'commander';

import {
  commandAction,
  signalAction,
  webhookAction,
  type Action,
  type ReloadActionOptions,
  type SignalTarget,
} from '../action.js';
import { isRunning } from '../core/process.js';
import { TokenFile } from '../index.js';
import {
  delay,
  duration,
  each,
  header,
  httpUrl,
  processId,
  refuseUnused,
  signalName,
  statusRange,
  text,
} from './arguments.js';
import { STOP_TIMEOUT_MS } from './child.js';
import { EXIT, ExitError } from './exit-code.js';
import type { Session } from './session.js';

/** How actions run, of any kind; undefined means the default of the library. */
export interface RunFlags {
  readonly check?: string;
  readonly onBusy?: 'queue' | 'restart';
  readonly splay?: number;
  readonly timeout?: number;
  readonly stopSignal?: NodeJS.Signals;
  readonly stopTimeout?: number;
  readonly exitOnError?: true;
}

/** The actions. */
export interface ActionFlags extends RunFlags {
  readonly exec?: readonly string[];
  readonly signal?: readonly NodeJS.Signals[];
  readonly pid?: number;
  readonly pidFile?: string;
  readonly process?: string;
  readonly webhook?: readonly string[];
  readonly webhookMethod?: string;
  readonly webhookStatus?: readonly [number, number];
  readonly webhookTimeout?: number;
  readonly webhookHeader?: readonly (readonly [string, string])[];
  readonly webhookTokenFile?: string;
}

/** Added to the time that a run may take to stop, because the kernel needs time to end its processes, ms. */
const STOP_LEEWAY_MS = 5_000;

/** Adds the flags for how actions run. */
export function addRunFlags(command: Command): Command {
  return command
    .optionsGroup('How actions run:')
    .option('--check <sh>', 'run this first; if it fails, do nothing until the next change', text)
    .addOption(
      new Option(
        '--on-busy <what>',
        'what a change does to an action that is running: wait for it, or stop it and start again (default: queue)',
      ).choices(['queue', 'restart']),
    )
    .option(
      '--splay <duration>',
      'first wait for a random part of this, so that not all pods act at once',
      delay,
    )
    .option('--timeout <duration>', 'stop an action that takes longer (default: 30s)', duration)
    .option('--stop-signal <signal>', 'the signal that asks a command to stop (default: TERM)', signalName)
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
    .option('--signal <signal>', 'send this signal (repeatable) to one of:', each(signalName))
    .option('--pid <n>', '  this process', processId)
    .option('--pid-file <file>', '  the process whose ID is in this file', text)
    .option('--process <name>', '  the topmost process of this program', text)
    .option('--webhook <url>', 'send the change to this URL as JSON (repeatable)', each(httpUrl))
    .option('--webhook-method <method>', '  with this method (default: POST)', text)
    .option('--webhook-status <range>', '  these status codes mean success (default: 200-299)', statusRange)
    .option(
      '--webhook-timeout <duration>',
      '  a request that takes longer fails (default: --timeout)',
      duration,
    )
    .option('--webhook-header <name: value>', '  with this header (repeatable)', each(header))
    .option('--webhook-token-file <file>', '  with the token in this file as a bearer token', text);
  return addRunFlags(command);
}

/** Converts these flags into options of a `ReloadAction`. */
export function reloadOptions(flags: RunFlags, session: Session): Omit<ReloadActionOptions, 'action'> {
  const { check, onBusy, splay, timeout, stopTimeout = STOP_TIMEOUT_MS, exitOnError } = flags;
  return {
    check: check === undefined ? undefined : shellAction(check, flags),
    onBusy,
    splayMs: splay,
    timeoutMs: timeout,
    stopTimeoutMs: stopTimeout + STOP_LEEWAY_MS,
    maxAttempts: exitOnError ? 1 : undefined,
    signal: session.signal,
  };
}

/**
 * The actions that the flags choose, in the order of the help; empty if there are none.
 * @throws {ExitError} for flags that cannot be combined.
 */
export function actionsOf(flags: ActionFlags, command: readonly string[], session: Session): Action[] {
  const actions: Action[] = [];
  const [program, ...args] = command;
  const { stopSignal, stopTimeout: stopTimeoutMs } = flags;
  if (program !== undefined) {
    actions.push(commandAction({ command: program, args, output: 'stderr', stopSignal, stopTimeoutMs }));
  }
  for (const line of flags.exec ?? []) actions.push(shellAction(line, flags));
  actions.push(...signalsOf(flags), ...webhooksOf(flags, session));
  if (actions.length === 0) {
    refuseUnused(
      flags,
      ['check', 'onBusy', 'splay', 'timeout', 'stopSignal', 'stopTimeout', 'exitOnError'],
      'an action: a command after --, --exec, --signal or --webhook',
    );
  }
  return actions;
}

function shellAction(command: string, { stopSignal, stopTimeout: stopTimeoutMs }: RunFlags): Action {
  return commandAction({ command, shell: true, output: 'stderr', stopSignal, stopTimeoutMs });
}

function signalsOf(flags: ActionFlags): Action[] {
  const { signal: signals = [] } = flags;
  if (signals.length === 0) {
    refuseUnused(flags, ['pid', 'pidFile', 'process'], '--signal, as in --signal HUP');
    return [];
  }
  const target = signalTargetOf(flags);
  return signals.map((signal) => signalAction(signal, target));
}

function signalTargetOf({ pid, pidFile, process: processName }: ActionFlags): SignalTarget {
  const targets = [
    ...(pid === undefined ? [] : [{ pid }]),
    ...(pidFile === undefined ? [] : [{ pidFile }]),
    ...(processName === undefined ? [] : [{ processName }]),
  ];
  const [target] = targets;
  if (!target || targets.length > 1) {
    throw new ExitError(EXIT.usage, '--signal needs exactly one of --pid, --pid-file and --process');
  }
  if (pid !== undefined && !isRunning(pid)) {
    throw new ExitError(EXIT.usage, `--pid ${pid}: there is no such process`);
  }
  return target;
}

function webhooksOf(flags: ActionFlags, session: Session): Action[] {
  const { webhook = [], webhookMethod: method, webhookStatus: status, webhookTimeout: timeoutMs } = flags;
  const { webhookTokenFile } = flags;
  if (webhook.length === 0) {
    refuseUnused(
      flags,
      ['webhookMethod', 'webhookStatus', 'webhookTimeout', 'webhookHeader', 'webhookTokenFile'],
      '--webhook, as in --webhook http://localhost:9090/-/reload',
    );
    return [];
  }
  const headers = Object.fromEntries(flags.webhookHeader ?? []);
  const token =
    webhookTokenFile === undefined
      ? undefined
      : session.closeAtEnd(new TokenFile(webhookTokenFile, { format: 'opaque', signal: session.signal }));
  return webhook.map((url) => webhookAction({ url, method, status, headers, token, timeoutMs }));
}
