/** One rule of `watch`, from the command line or from the file of `--config`. */
import type { Command } from 'commander';
import type { ResilientWatcher } from 'resilient-watcher';

import { mergeUpdates, updateOf, type ActionUpdate } from './action.js';
import { actionsOf, addActionFlags, reloadActionOf, type ActionFlags } from './action-flags.js';
import { EXIT } from './exit-code.js';
import { warnOfMissingProgram } from './program-path.js';
import type { Execution } from './execution.js';
import type { Invocation } from './subcommand.js';
import {
  addWatchFlags,
  createWatchers,
  missingPaths,
  relevant,
  settled,
  startWatchers,
  type WatchFlags,
} from './watched-paths.js';

/** The flags of a rule; `once` is for a single one. */
export interface RuleFlags extends ActionFlags, WatchFlags {
  readonly initial?: true;
  readonly once?: true;
}

/** The paths of a rule, and what to do when they change. */
export type RuleOptions = Omit<Invocation<RuleFlags>, 'execution' | 'program'>;

/**
 * Starts a rule. Resolves when the current contents are known, or the rule has been closed.
 * @param isReplacement acts once in any case, because the previous rule may have left a change unhandled.
 */
type StartRule = (isReplacement?: boolean) => Promise<void>;

/** Adds the flags of a rule. */
export function addRuleFlags(command: Command): Command {
  return addWatchFlags(addActionFlags(command).option('--initial', 'also act on the initial contents'));
}

/**
 * Prepares a rule that watches paths and acts on their changes until its execution is closed. Does no I/O.
 * @param isOneOfMany its paths belong to its name.
 * @throws {ExitError | TypeError} for flags that are wrong or cannot be combined.
 */
export function prepareRule(
  { paths, flags, command }: RuleOptions,
  execution: Execution,
  isOneOfMany = false,
): StartRule {
  const actions = actionsOf(flags, command, execution);
  const reload =
    actions.length === 0 ? undefined : reloadActionOf(actions, flags, execution, isOneOfMany ? paths : []);
  if (flags.once) reload?.on('succeeded', () => execution.end(EXIT.ok));
  let isStarted = false;
  /** Collected until the first checks have ended, so that one action handles what is there at the start. */
  let early: ActionUpdate | undefined;
  const handle = (update: ActionUpdate): void => {
    if (!isStarted) early = early ? mergeUpdates(early, update) : update;
    else if (reload) reload.trigger(update);
    else if (flags.once) execution.end(EXIT.ok);
  };
  const settle = settled({ paths, settle: flags.settle }, execution, handle);
  const watchers = createWatchers(paths, flags, execution, (given, { path }) => {
    const change = relevant(given, flags);
    if (!change) return;
    // What becomes known only after the start is a change, too.
    if (isStarted || change.cause !== 'start' || flags.initial)
      (isStarted ? settle : handle)(updateOf(change, path));
  });
  return async (isReplacement = false) => {
    try {
      await reload?.start();
      await startWatchers(watchers, execution);
      await warnOfMissingProgram(command, execution);
    } catch (error) {
      if (!execution.signal.aborted) throw error;
    }
    if (execution.signal.aborted) return;
    const only = reload ? '' : '; no action is given, so changes are only printed';
    execution.output.log('info', 'ready', `watching ${paths.join(', ')}${only}`, { paths });
    for (const path of missingPaths(watchers.filter(({ current }) => current))) {
      const message = `${path}: does not exist; watching for it to be created`;
      execution.output.log('warn', 'missing', message, { path });
    }
    if (isReplacement) for (const watcher of watchers) handle(presentAt(watcher));
    isStarted = true;
    if (early) handle(early);
  };
}

/** Everything at the path, as if all of it were new. */
function presentAt({ path, current }: ResilientWatcher): ActionUpdate {
  const added = [...(current?.files.keys() ?? [])];
  const revision = current?.revision ?? null;
  return { paths: [{ path, added, changed: [], removed: [], revision }], cause: 'start' };
}
