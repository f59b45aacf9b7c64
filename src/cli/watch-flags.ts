import type { Command } from 'commander';

import { addActionFlags } from './action-flags.js';
import { addWatchFlags } from './watched-paths.js';

/** Adds the flags that a rule of `--config` can have, too. */
export function addRuleFlags(command: Command): Command {
  return addWatchFlags(addActionFlags(command))
    .option('--initial', 'act on what is there at the start, too')
    .option('--once', 'exit when the first change has been acted on');
}
