/**
 * PID 1 of a container also has to reap orphans. Node.js waits for its own children only, so a shell takes its place:
 * it starts this program again, forwards signals, and reaps what it inherits.
 */
import { existsSync } from 'node:fs';

import type { Output } from './output.js';

const SHELL = '/bin/sh';

/**
 * `wait` reaps every child of the shell, inherited ones included. A trap interrupts it, so it is repeated. The stdin of a
 * background command would be /dev/null, hence descriptor 3.
 */
const INIT_SCRIPT = `
exec 3<&0
"$@" <&3 3<&- & child=$!
for name in INT TERM HUP QUIT USR1 USR2 WINCH; do trap "kill -$name $child 2>/dev/null" $name; done
while :; do
  wait $child; code=$?
  kill -0 $child 2>/dev/null || exit $code
done`;

/** Node.js 22.15 and later; the types are of Node.js 20. */
type Replaceable = NodeJS.Process & {
  readonly execve?: (file: string, args: readonly string[], env: NodeJS.ProcessEnv) => never;
};

/** Has no effect unless this process is PID 1. */
export function becomeInit(output: Output): void {
  if (process.pid !== 1) return;
  const { execve } = process as Replaceable;
  if (execve && existsSync(SHELL)) {
    // The warning that execve is experimental does not help the operator.
    process.removeAllListeners('warning');
    const args = [SHELL, '-c', INIT_SCRIPT, 'resilient-watcher', process.execPath, ...process.execArgv];
    execve.call(process, SHELL, [...args, ...process.argv.slice(1)], process.env);
  }
  output.log(
    'warn',
    'init',
    'running as PID 1 without an init: orphans are not reaped. Use Node.js 22.15 or later with /bin/sh, or tini',
  );
}
