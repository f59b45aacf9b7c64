/** Cleans up after a suite that cannot do so itself, because it was killed by SIGKILL. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Reads the number of a process group, and `done` at the end; without that, the end of the pipe is that of the suite. */
const SCRIPT = `while read -r line; do last=$line; done
[ "$last" = done ] && exit
[ -n "$last" ] && kill -s KILL -- "-$last"
rm -rf -- "$1"`;

/** A shell that outlives this process, and then kills the program and removes the directory. */
export class Guardian {
  readonly #shell: ChildProcess;

  constructor(directory: string) {
    // In a session of its own, so that what kills the process group of the suite does not kill it.
    this.#shell = spawn('sh', ['-c', SCRIPT, 'sh', directory], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    // Without it, the suite works all the same.
    this.#shell.on('error', () => {});
    this.#shell.stdin?.on('error', () => {});
  }

  /** @param group the number of the process group of the program; undefined if it could not be started. */
  watch(group: number | undefined): void {
    if (group !== undefined) this.#shell.stdin?.write(`${group}\n`);
  }

  /** Resolves when it has ended, because nothing is left to clean up. */
  async dismiss(): Promise<void> {
    this.#shell.stdin?.end('done\n');
    const { pid, exitCode, signalCode } = this.#shell;
    if (pid !== undefined && exitCode === null && signalCode === null) await once(this.#shell, 'exit');
  }
}
