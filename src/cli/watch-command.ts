import type { Command } from 'commander';

import { flagOf, text } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import type { Invocation } from './invocation.js';
import { addListenFlag, listen, type ListenFlags } from './listen.js';
import { RulesFile } from './rules-file.js';
import { addRuleFlags } from './watch-flags.js';
import { checkPaths, WatchRule, type RuleFlags } from './watch-rule.js';

interface Flags extends RuleFlags, ListenFlags {
  readonly config?: string;
}

/** The flags that can be combined with `--config`. */
const WITH_CONFIG: readonly string[] = ['config', 'listen', 'json', 'logLevel'];

/** `watch`: acts on changes, for example as a sidecar. */
export function addWatchCommand(command: Command): void {
  command
    .description('act on each change of files, volumes or directories')
    .argument('[path...]', 'what to watch; a command may follow after --');
  addRuleFlags(command)
    .optionsGroup('Options:')
    .option('--config <file>', 'read rules from a YAML file, which is watched, too', text);
  addListenFlag(command).addHelpText(
    'after',
    `
Commands get the change in RW_PATH, RW_KEYS, RW_REVISION and RW_CAUSE, and as JSON on stdin; contents are never part of it.
Without an action, changes are only printed. A failed action is tried again, always with the newest revision.
Add --initial if a change must not be missed while this program is not running.

Examples:
  resilient-watcher watch /etc/nginx/conf.d --check 'nginx -t' -- nginx -s reload
  resilient-watcher watch /etc/tls --signal HUP --process haproxy
  resilient-watcher watch /etc/prometheus --webhook http://localhost:9090/-/reload`,
  );
}

/** Runs `watch` until the session ends. */
export async function runWatch({ paths, flags, command, session }: Invocation<Flags>): Promise<void> {
  const { config } = flags;
  if (config === undefined) checkPaths(paths);
  else refuseBesideConfig(paths, flags, command);
  const rules =
    config === undefined
      ? new WatchRule({ paths, flags, command }, session.fork())
      : new RulesFile(config, session);
  session.endOnSignals();
  await listen(flags, session);
  await rules.start();
}

/** @throws {ExitError} for arguments that belong in a rule. */
function refuseBesideConfig(paths: readonly string[], flags: Flags, command: readonly string[]): void {
  if (paths.length > 0 || command.length > 0) {
    throw new ExitError(EXIT.usage, 'with --config, paths and commands belong in the rules of the file');
  }
  const ofRule = Object.keys(flags).find((name) => !WITH_CONFIG.includes(name));
  if (ofRule === undefined) return;
  throw new ExitError(EXIT.usage, `with --config, ${flagOf(ofRule)} belongs in the rules of the file`);
}
