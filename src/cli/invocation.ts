import type { Session } from './session.js';

/** What a command was called with. */
export interface Invocation<Flags> {
  readonly paths: readonly string[];
  readonly flags: Flags;
  /** The command after `--`; empty without one. */
  readonly command: readonly string[];
  readonly session: Session;
}
