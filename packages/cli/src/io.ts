/** What the program uses of its process. */
import type { Readable, Writable } from 'node:stream';

import type { Clock } from 'resilient-watcher';

/** The streams, descriptors, environment, signals and clock of one run of the program. */
export interface Io {
  /** Read by `doctor --manifest -` only; before that, the stream of a process must not be touched. */
  readonly stdin: () => Readable;
  readonly stdout: Writable;
  readonly stderr: Writable & { readonly isTTY?: boolean };
  /** The standard streams as commands inherit them. */
  readonly descriptors: readonly [stdin: number, stdout: number, stderr: number];
  readonly env: NodeJS.ProcessEnv;
  /** Emits the name of each signal that arrives. */
  readonly signals: { on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown };
  readonly clock: Clock;
  /** For PID 1: called before a command starts others. Resolves only if there is no init to take its place. */
  readonly becomeInit?: (() => Promise<void>) | undefined;
}
