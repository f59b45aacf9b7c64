/** `execve(2)`: another program in place of this one, with the same PID. */
import { existsSync } from 'node:fs';

const SHELL = '/bin/sh';

/** Node.js 22.15 and later; the types are of Node.js 20. */
type Replaceable = NodeJS.Process & {
  readonly execve?: (file: string, args: readonly string[], env: NodeJS.ProcessEnv) => never;
};

/** Runs a shell script in place of this program. Returns only if that is not possible. */
export function becomeShell(script: string, ...args: readonly string[]): void {
  const { execve } = process as Replaceable;
  if (!execve || !existsSync(SHELL)) return;
  // The warning that execve is experimental does not help the operator.
  process.removeAllListeners('warning');
  execve.call(process, SHELL, [SHELL, '-c', script, 'resilient-watcher', ...args], process.env);
}
