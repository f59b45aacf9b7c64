import { Option, type Command } from 'commander';

import { systemClock, type Snapshot } from '../index.js';
import { duration, text } from './arguments.js';
import { forwardSignals, superviseCommand } from './child.js';
import { EXIT, ExitError } from './exit-code.js';
import type { Invocation } from './invocation.js';
import { checkPaths } from './watch-rule.js';
import {
  addWatchFlags,
  createWatchers,
  startWatchers,
  type WatchedPaths,
  type WatchFlags,
} from './watched-paths.js';

interface Flags extends WatchFlags {
  readonly key?: string;
  readonly sha256?: string;
  readonly changedSince?: string;
  readonly timeout?: number;
}

/** `wait`: for init containers and scripts. */
export function addWaitCommand(command: Command): void {
  command
    .description('wait until all paths exist, or have certain contents')
    .argument('[path...]', 'what to wait for; a command to run afterwards may follow after --')
    .optionsGroup('What to wait for:')
    .option('--key <name>', 'this key, in each of the paths', text)
    .addOption(
      new Option('--sha256 <digest>', 'contents with this digest').argParser(text).conflicts('changedSince'),
    )
    .option('--changed-since <digest>', 'contents with a digest other than this', text)
    .option('--timeout <duration>', 'how long to wait before exiting with 124 (default: forever)', duration);
  addWatchFlags(command).addHelpText(
    'after',
    `
Digests are those of sha256sum, with or without "sha256:".

Examples:
  resilient-watcher wait /etc/tls --key tls.crt --timeout 60s
  resilient-watcher wait /etc/app/config.yaml --changed-since "$(sha256sum < old.yaml | cut -d' ' -f1)" -- ./migrate`,
  );
}

/** Runs `wait` until all paths meet the condition, and then the command, if there is one. */
export async function runWait({ paths, flags, command, session }: Invocation<Flags>): Promise<void> {
  checkPaths(paths);
  if (flags.group && flags.key !== undefined) {
    throw new ExitError(EXIT.usage, '--key cannot be used with --group: the paths are files');
  }
  const isWanted = predicate(flags);
  const child = command.length === 0 ? undefined : superviseCommand(command, session);
  forwardSignals(child, session);
  const awaited = new Set<WatchedPaths>();
  let isOver = false;
  const finish = (): void => {
    if (isOver || awaited.size > 0) return;
    isOver = true;
    timer?.cancel();
    for (const { watcher } of watched) void watcher.close();
    if (child) child.start();
    else session.end(EXIT.ok);
  };
  const unmet = (): string[] =>
    [...awaited].flatMap(({ missing, paths: all }) => (missing.length > 0 ? missing : all));
  const giveUp = (): void => {
    const missing = unmet();
    session.output.log('error', 'timeout', `gave up waiting for ${missing.join(', ')}`, { missing });
    session.end(EXIT.timeout);
  };
  const timer = flags.timeout === undefined ? undefined : systemClock.schedule(giveUp, flags.timeout);
  let isStarted = false;
  const watched = createWatchers(paths, flags, session, () => {
    if (isStarted) check();
  });
  const check = (): void => {
    for (const one of watched) {
      const { current } = one.watcher;
      if (current && one.missing.length === 0 && isWanted(current)) awaited.delete(one);
      else awaited.add(one);
    }
    finish();
  };
  for (const one of watched) awaited.add(one);
  await startWatchers(watched, session);
  isStarted = true;
  check();
  if (awaited.size === 0) return;
  const waiting = unmet();
  session.output.log('info', 'waiting', `waiting for ${waiting.join(', ')}`, { paths: waiting });
}

function predicate({ key, sha256, changedSince }: Flags): (snapshot: Snapshot) => boolean {
  const wanted = sha256 === undefined ? undefined : digest('--sha256', sha256);
  const old = changedSince === undefined ? undefined : digest('--changed-since', changedSince);
  return (snapshot) => {
    if (key !== undefined && !snapshot.files.has(key)) return false;
    const current = key === undefined ? snapshot.digest : snapshot.files.get(key)?.digest;
    return (wanted === undefined || current === wanted) && (old === undefined || current !== old);
  };
}

function digest(flag: string, text: string): string {
  const hex = text.replace(/^sha256:/, '').toLowerCase();
  if (!/^[\da-f]{64}$/.test(hex))
    throw new ExitError(EXIT.usage, `${flag} must be a SHA-256 digest: 64 hexadecimal digits`);
  return `sha256:${hex}`;
}
