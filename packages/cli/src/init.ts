/**
 * PID 1 of a container also has to reap orphans. Node.js waits for its own children only, so a shell takes its place:
 * it starts this program again, forwards signals, and reaps what it inherits.
 */
import { systemClock } from 'resilient-watcher';
import { sleep } from 'resilient-watcher/internal';

import { becomeShell } from './replace-process.js';

/**
 * `wait` reaps every child of the shell, inherited ones included. A trap interrupts it, so it is repeated. A signal may
 * come before there is a child. The stdin of a background command would be /dev/null, hence descriptor 3.
 */
const INIT_SCRIPT = `
exec 3<&0
child= early=
for name in INT TERM HUP QUIT USR1 USR2 WINCH; do trap "early=$name; "'kill -$early $child 2>/dev/null' $name; done
"$@" <&3 3<&- & child=$!
[ -z "$early" ] || kill -$early $child
while :; do
  wait $child; code=$?
  kill -0 $child 2>/dev/null || exit $code
done`;

/** Puts the shell in the place of this process. Resolves only if that is not possible. */
export async function becomeInit(): Promise<void> {
  // A signal that has arrived while the program was loading is handled between these turns, and would be forgotten.
  await sleep(systemClock, 0);
  await sleep(systemClock, 0);
  becomeShell(INIT_SCRIPT, process.execPath, ...process.execArgv, ...process.argv.slice(1));
}
