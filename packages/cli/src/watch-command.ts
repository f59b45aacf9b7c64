import { Option, type Command } from 'commander';

import { checkPaths, text } from './arguments.js';
import { UsageError } from './exit-code.js';
import { addListenFlag, listen, type ListenFlags } from './listen.js';
import type { Invocation, Subcommand } from './subcommand.js';
import { addRuleFlags, prepareRule, type RuleFlags } from './watch-rule.js';

interface Flags extends RuleFlags, ListenFlags {
  readonly config?: string;
}

function addWatchCommand(command: Command): void {
  command
    .description('act on each change of files, volumes or directories')
    .usage('[options] [path...] [-- <command...>]')
    .argument('[path...]', 'what to watch; a command may follow after --');
  addRuleFlags(command).optionsGroup('Options:').option('--once', 'exit after acting on the first change');
  const ofRule = command.options.map((option) => option.attributeName());
  command.addOption(
    new Option('--config <file>', 'read rules from a YAML file, which is watched, too')
      .argParser(text)
      .conflicts(ofRule),
  );
  addListenFlag(command).addHelpText(
    'after',
    `
A command receives the change in RW_PATH, RW_KEYS (a JSON array), RW_REVISION and RW_CAUSE, and as JSON on stdin, but never
the contents.
Without an action, changes are only printed. A failed action is retried, always with the newest revision.
As PID 1, this program also reaps the orphans of its commands.
Use --initial if changes that happen while this program is not running must not be missed.

Examples:
  resilient-watcher watch /etc/nginx/conf.d --check 'nginx -t' -- nginx -s reload
  resilient-watcher watch /etc/tls --signal HUP --process haproxy
  resilient-watcher watch /etc/prometheus --webhook http://localhost:9090/-/reload`,
  );
}

/** Runs `watch` until the execution ends. */
async function runWatch({ paths, flags, command, execution }: Invocation<Flags>): Promise<void> {
  const { config } = flags;
  if (config === undefined) checkPaths(paths);
  else if (paths.length + command.length > 0) {
    throw new UsageError('with --config, paths and commands belong in the rules of the file');
  }
  const start =
    config === undefined
      ? prepareRule({ paths, flags, command }, execution)
      : async () => (await import('./rules-file.js')).watchRules(config, execution);
  await execution.becomeInit();
  execution.endOnSignals();
  await listen(flags, execution);
  await start();
}

/** `watch`: acts on changes, for example as a sidecar. */
export const watch: Subcommand<Flags> = { describe: addWatchCommand, run: runWatch };
