import { spawn } from 'node:child_process';
import { constants } from 'node:os';

import { Option, type Command } from 'commander';

import { systemClock, type Snapshot } from '../index.js';
import { duration } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import { exitCodeOf, type Session } from './session.js';
import { addWatchFlags, watchPaths, type WatchFlags } from './watched-paths.js';

interface Flags extends WatchFlags {
  readonly key?: string;
  readonly sha256?: string;
  readonly changedSince?: string;
  readonly timeout?: number;
}

/** `wait`: for init containers and scripts. */
export function addWaitCommand(command: Command): Command {
  command
    .description('exit with 0 when all paths exist, or are as wanted')
    .argument('<path...>', 'what to wait for; a command to run afterwards may follow after --')
    .option('--key <name>', 'this key must be there')
    .addOption(
      new Option('--sha256 <digest>', 'the contents must have this digest').conflicts('changedSince'),
    )
    .option('--changed-since <digest>', 'the contents must have another digest than this')
    .option('--timeout <duration>', 'exit with 124 after this long', duration);
  return addWatchFlags(command).addHelpText(
    'after',
    `
Digests are those of sha256sum, with or without "sha256:".

Examples:
  resilient-watcher wait /etc/tls --key tls.crt --timeout 60s
  resilient-watcher wait /etc/app/config.yaml --changed-since "$(sha256sum < old.yaml | cut -d' ' -f1)" -- ./migrate`,
  );
}

/** Runs `wait` until all paths are as wanted. */
export async function runWait(
  paths: readonly string[],
  flags: Flags,
  command: readonly string[],
  session: Session,
): Promise<void> {
  const satisfied = new Set<string>();
  if (flags.timeout !== undefined) {
    const timer = systemClock.schedule(() => {
      const waiting = paths.filter((path) => !satisfied.has(path));
      session.output.log('error', 'timeout', `gave up waiting for ${waiting.join(', ')}`, { paths: waiting });
      session.end(EXIT.timeout);
    }, flags.timeout);
    session.closeAtEnd({ close: () => Promise.resolve(timer.cancel()) });
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => session.end(128 + constants.signals[signal]));
  }
  const isWanted = predicate(flags);
  let watched = Infinity;
  const check = (current: Snapshot | undefined, path: string): void => {
    if (current && isWanted(current)) satisfied.add(path);
    else satisfied.delete(path);
    if (satisfied.size < watched) return;
    watched = Infinity;
    if (command.length === 0) session.end(EXIT.ok);
    else runCommand(command, session);
  };
  const watchers = await watchPaths(paths, flags, session, ({ current }, path) => check(current, path));
  watched = watchers.length;
  for (const { current, path } of watchers) check(current, path);
}

function predicate({ key, sha256, changedSince }: Flags): (snapshot: Snapshot) => boolean {
  const wanted = sha256 === undefined ? undefined : digest('--sha256', sha256);
  const old = changedSince === undefined ? undefined : digest('--changed-since', changedSince);
  return (snapshot) => {
    if (snapshot.kind === 'missing') return false;
    if (key !== undefined && !snapshot.files.has(key)) return false;
    const current = key === undefined ? snapshot.digest : snapshot.files.get(key)?.digest;
    return (wanted === undefined || current === wanted) && (old === undefined || current !== old);
  };
}

function digest(flag: string, text: string): string {
  const hex = text.replace(/^sha256:/, '').toLowerCase();
  if (!/^[\da-f]{64}$/.test(hex))
    throw new ExitError(EXIT.usage, `${flag} must be a SHA-256 digest of 64 hex digits`);
  return `sha256:${hex}`;
}

function runCommand([program = '', ...args]: readonly string[], session: Session): void {
  const child = spawn(program, args, { stdio: 'inherit' });
  child.once('error', (error) => {
    session.output.log('error', 'error', `cannot start ${program}: ${error.message}`);
    session.end(127);
  });
  child.once('exit', (code, signal) => session.end(exitCodeOf(code, signal)));
}
