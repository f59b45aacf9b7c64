import type { Command } from 'commander';

import type { Execution } from './execution.js';

/** The parsed command line of one command. */
export interface Invocation<Flags> {
  readonly paths: readonly string[];
  readonly flags: Flags;
  /** The command after `--`; empty if there is none. */
  readonly command: readonly string[];
  readonly execution: Execution;
}

/** A command of the program. */
export interface Subcommand<Flags = object> {
  /** Adds its description, arguments and flags. */
  describe(command: Command): void;
  run(invocation: Invocation<Flags>): Promise<void>;
}
