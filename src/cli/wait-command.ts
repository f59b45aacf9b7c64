import { Option, type Command } from 'commander';

import { systemClock, type ResilientWatcher, type Snapshot } from '../index.js';
import { duration, text } from './arguments.js';
import { superviseCommand } from './child.js';
import { EXIT, ExitError } from './exit-code.js';
import { exitCodeOf, type Session } from './session.js';
import { checkPaths } from './watch-rule.js';
import { addWatchFlags, createWatchers, startWatchers, type WatchFlags } from './watched-paths.js';

/** As `docker stop`, ms. */
const STOP_TIMEOUT_MS = 10_000;

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
    .argument('[path...]', 'what to wait for; a command to run afterwards may follow after --')
    .option('--key <name>', 'this key must be there', text)
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
  checkPaths(paths);
  const isWanted = predicate(flags);
  const awaited = new Set<ResilientWatcher>();
  let isOver = false;
  const finish = (): void => {
    if (isOver || awaited.size > 0) return;
    isOver = true;
    timer?.cancel();
    if (command.length === 0) session.end(EXIT.ok);
    else runCommand(command, session);
  };
  const timer =
    flags.timeout === undefined
      ? undefined
      : systemClock.schedule(() => {
          const missing = [...awaited].map(({ path }) => path);
          session.output.log('error', 'timeout', `gave up waiting for ${missing.join(', ')}`, { missing });
          session.end(EXIT.timeout);
        }, flags.timeout);
  session.onSignals(['SIGTERM', 'SIGINT', 'SIGHUP'], (signal) => {
    if (!isOver) session.end(exitCodeOf(null, signal));
  });
  const watchers = createWatchers(paths, flags, session, () => check());
  const check = (): void => {
    for (const watcher of watchers) {
      if (watcher.current && isWanted(watcher.current)) awaited.delete(watcher);
      else awaited.add(watcher);
    }
    finish();
  };
  for (const watcher of watchers) awaited.add(watcher);
  await startWatchers(watchers);
  check();
  if (awaited.size === 0) return;
  const waiting = [...awaited].map(({ path }) => path);
  session.output.log('info', 'waiting', `waiting for ${waiting.join(', ')}`, { paths: waiting });
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

/** Hands signals on, and ends with the exit code of the command. */
function runCommand(command: readonly string[], session: Session): void {
  const child = superviseCommand(command, { stopSignal: 'SIGTERM', stopTimeout: STOP_TIMEOUT_MS }, session);
  session.onSignals(['SIGTERM', 'SIGINT', 'SIGHUP'], (signal) => child.signal(signal));
  child.start();
}
