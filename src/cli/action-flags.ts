/** The flags of `watch` and `run` that say what is done, and how. */
import { Option, type Command } from 'commander';

import {
  commandAction,
  signalAction,
  webhookAction,
  type Action,
  type ReloadActionOptions,
} from '../action.js';
import { TokenFile } from '../index.js';
import { duration, each, header, httpUrl, processId, signalName, statusRange, text } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import type { Session } from './session.js';

/** How an action is run, whatever it is. */
export interface RunFlags {
  readonly check?: string;
  readonly onBusy: 'queue' | 'restart';
  readonly splay: number;
  readonly timeout: number;
  readonly stopSignal: NodeJS.Signals;
  readonly stopTimeout: number;
  readonly exitOnError?: true;
}

/** What is done. */
export interface ActionFlags extends RunFlags {
  readonly exec?: readonly string[];
  readonly signal?: readonly NodeJS.Signals[];
  readonly pid?: number;
  readonly pidFile?: string;
  readonly process?: string;
  readonly webhook?: readonly string[];
  readonly webhookMethod: string;
  readonly webhookStatus: readonly [number, number];
  readonly webhookHeader?: readonly (readonly [string, string])[];
  readonly webhookTokenFile?: string;
}

/** Adds the flags that say how an action is run. */
export function addRunFlags(command: Command): Command {
  return command
    .option('--check <sh>', 'run this first; when it fails nothing is done until the next change', text)
    .addOption(
      new Option('--on-busy <what>', 'what a change does to an action that is under way')
        .choices(['queue', 'restart'])
        .default('queue'),
    )
    .option(
      '--splay <duration>',
      'wait a random part of this first, so that not all pods act at once',
      duration,
      0,
    )
    .option('--timeout <duration>', 'stop an action that takes longer', duration, 30_000)
    .option(
      '--stop-signal <signal>',
      'the signal that asks a command to stop',
      signalName,
      'SIGTERM' as NodeJS.Signals,
    )
    .option(
      '--stop-timeout <duration>',
      'how long its process group may take before it is killed',
      duration,
      10_000,
    )
    .option('--exit-on-error', 'exit with 1 when an action fails, instead of trying again');
}

/** Adds the flags that say what is done. */
export function addActionFlags(command: Command): Command {
  return addRunFlags(command)
    .option('--exec <sh>', 'run this with /bin/sh -c (repeatable)', each(text))
    .option('--signal <signal>', 'send this signal (repeatable), to one of:', each(signalName))
    .option('--pid <n>', '  this process', processId)
    .option('--pid-file <file>', '  the process whose ID is in this file', text)
    .option('--process <name>', '  the topmost process of this program', text)
    .option('--webhook <url>', 'call this URL with the change as JSON (repeatable)', each(httpUrl))
    .option('--webhook-method <method>', 'by this method', 'POST')
    .option('--webhook-status <range>', 'these status codes are success', statusRange, [200, 299] as [
      number,
      number,
    ])
    .option('--webhook-header <name: value>', 'with this header (repeatable)', each(header))
    .option('--webhook-token-file <file>', 'with the token in this file as bearer token', text);
}

/** The options of a `ReloadAction` that these flags mean. */
export function reloadOptions(flags: RunFlags, session: Session): Omit<ReloadActionOptions, 'action'> {
  const { check, onBusy, splay, timeout, stopTimeout, exitOnError } = flags;
  return {
    check: check === undefined ? undefined : shellAction(check, flags),
    onBusy,
    splayMs: splay,
    timeoutMs: timeout,
    stopTimeoutMs: stopTimeout + 5_000,
    maxAttempts: exitOnError ? 1 : Infinity,
    signal: session.signal,
  };
}

/** What the flags ask for, in the order of the help; empty when they ask for nothing. */
export function actionsOf(flags: ActionFlags, command: readonly string[], session: Session): Action[] {
  const actions: Action[] = [];
  const [program, ...args] = command;
  const { stopSignal, stopTimeout: stopTimeoutMs } = flags;
  if (program !== undefined) {
    actions.push(commandAction({ command: program, args, output: 'stderr', stopSignal, stopTimeoutMs }));
  }
  for (const line of flags.exec ?? []) actions.push(shellAction(line, flags));
  for (const signal of flags.signal ?? []) actions.push(signalAction(signal, signalTargetOf(flags)));
  if (!flags.signal && (flags.pid ?? flags.pidFile ?? flags.process) !== undefined) {
    throw new ExitError(EXIT.usage, '--pid, --pid-file and --process need --signal, as in --signal HUP');
  }
  actions.push(...webhooksOf(flags, session));
  return actions;
}

function shellAction(command: string, { stopSignal, stopTimeout: stopTimeoutMs }: RunFlags): Action {
  return commandAction({ command, shell: true, output: 'stderr', stopSignal, stopTimeoutMs });
}

function signalTargetOf({
  pid,
  pidFile,
  process: processName,
}: ActionFlags): Parameters<typeof signalAction>[1] {
  const given = [pid, pidFile, processName].filter((value) => value !== undefined);
  if (given.length !== 1) {
    throw new ExitError(EXIT.usage, '--signal needs exactly one of --pid, --pid-file and --process');
  }
  if (pid !== undefined) return { pid };
  return pidFile === undefined ? { processName: processName ?? '' } : { pidFile };
}

function webhooksOf(flags: ActionFlags, session: Session): Action[] {
  const { webhook = [], webhookMethod: method, webhookStatus: status, webhookTokenFile } = flags;
  if (webhook.length === 0) {
    if (webhookTokenFile !== undefined)
      throw new ExitError(EXIT.usage, '--webhook-token-file needs --webhook');
    return [];
  }
  const headers = Object.fromEntries(flags.webhookHeader ?? []);
  const token =
    webhookTokenFile === undefined
      ? undefined
      : session.closeAtEnd(new TokenFile(webhookTokenFile, { format: 'opaque', signal: session.signal }));
  return webhook.map((url) => webhookAction({ url, method, status, headers, token }));
}
