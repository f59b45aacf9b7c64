import type { Command } from 'commander';

import { addActionFlags } from './action-flags.js';
import { addWatchFlags } from './watched-paths.js';

/** Adds the flags that a rule of `--config` can also have. */
export function addRuleFlags(command: Command): Command {
  return addWatchFlags(addActionFlags(command))
    .option('--initial', 'also act on the contents at the start')
    .option('--once', 'exit when the first change has been acted on');
}
