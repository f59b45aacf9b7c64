import type { Command } from 'commander';

import { EXIT, ExitError } from './exit-code.js';
import { addListenFlag, listen, type ListenFlags } from './listen.js';
import { RulesFile } from './rules-file.js';
import type { Session } from './session.js';
import { addRuleFlags } from './watch-flags.js';
import { checkPaths, WatchRule, type RuleFlags } from './watch-rule.js';

interface Flags extends RuleFlags, ListenFlags {
  readonly config?: string;
}

/** `watch`: acts on changes as a sidecar does. */
export function addWatchCommand(command: Command): Command {
  command
    .description('act on each change of files, volumes or directories')
    .argument('[path...]', 'what to watch; a command may follow after --');
  addListenFlag(addRuleFlags(command))
    .option('--config <file>', 'take many rules from a YAML file, which is itself watched')
    .addHelpText(
      'after',
      `
The command gets the change in RW_PATH, RW_KEYS, RW_REVISION and RW_CAUSE, and as JSON on stdin; never contents.
Without an action, changes are only printed. A failed action is tried again, always with the newest revision.

Examples:
  resilient-watcher watch /etc/nginx/conf.d --check 'nginx -t' -- nginx -s reload
  resilient-watcher watch /etc/tls --signal HUP --process haproxy
  resilient-watcher watch /etc/prometheus --webhook http://localhost:9090/-/reload`,
    );
  return command;
}

/** Runs `watch` until the session ends. */
export async function runWatch(
  paths: readonly string[],
  flags: Flags,
  command: readonly string[] | undefined,
  session: Session,
): Promise<void> {
  const { config } = flags;
  if (config !== undefined && (paths.length > 0 || command)) {
    throw new ExitError(EXIT.usage, 'give paths or --config, not both');
  }
  if (config === undefined) checkPaths(paths);
  if (command?.length === 0) throw new ExitError(EXIT.usage, 'no command after --');
  const rules =
    config === undefined
      ? new WatchRule({ paths, flags, command: command ?? [] }, session.fork())
      : new RulesFile(config, session);
  session.endOnSignals();
  await listen(flags, session);
  await rules.start();
}
