/** Runs the program under test: a process group whose standard output is read line by line. */
import { ProcessGroup } from '../action/process-group.js';
import { sha256 } from '../core/digest.js';

/** What a line of the program contains: the SHA-256 of the contents, or the contents. */
export type LineFormat = 'digest' | 'content';

/** How a program is started. */
export interface ProgramOptions {
  readonly command: readonly string[];
  readonly lines: LineFormat;
  readonly user: { readonly uid: number; readonly gid: number } | undefined;
  /** Called for each state that the program shows. */
  readonly onDigest: (digest: string) => void;
  /** Called when the program has ended or could not be started. */
  readonly onEnd: (reason: string) => void;
}

/** The maximum length of a line, characters; the largest content is 1 MiB, and JSON may escape all of it. */
const LONGEST_LINE = 8 * 2 ** 20;
/** The maximum length of the output on stderr that is kept, characters. */
const SHOWN_ERROR = 4_000;
const KILL_TIMEOUT_MS = 5_000;

/** A running program. */
export class TestedProgram {
  readonly #group: ProcessGroup;
  readonly #options: ProgramOptions;
  #rest = '';
  #errors = '';
  #isEnding = false;

  /** @throws {Error} when it cannot be spawned at all, for example with E2BIG. */
  constructor(options: ProgramOptions) {
    this.#options = options;
    const [file = '', ...args] = options.command;
    this.#group = new ProcessGroup(file, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options.user });
    const { stdout, stderr } = this.#group.child;
    stdout?.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk));
    stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      this.#errors = (this.#errors + chunk).slice(-SHOWN_ERROR);
    });
    this.#group.exited.then(
      ({ code, signal }) => this.#ended(signal ? `killed by ${signal}` : `ended with code ${code}`),
      (error: unknown) => this.#ended(error instanceof Error ? error.message : String(error)),
    );
  }

  /** Stops or continues all processes of the program. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    const { pid } = this.#group.child;
    if (pid !== undefined && this.#group.child.exitCode === null) process.kill(-pid, signal);
  }

  /** Kills the process group, and resolves when it has ended. */
  async kill(): Promise<void> {
    this.#isEnding = true;
    await this.#group.stop('SIGKILL', KILL_TIMEOUT_MS);
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = (lines.pop() ?? '').slice(0, LONGEST_LINE);
    for (const line of lines) {
      const digest = digestOf(line, this.#options.lines);
      if (digest !== undefined && !this.#isEnding) this.#options.onDigest(digest);
    }
  }

  #ended(reason: string): void {
    if (this.#isEnding) return;
    const lines = this.#errors.trim().split('\n').reverse();
    // Node.js prints the place of an event after the error.
    const line =
      lines.find((text) => /^(?! *\t*at |Emitted ).*(?:error|exception)/i.test(text)) ?? lines[0] ?? '';
    this.#options.onEnd(line === '' ? reason : `${reason}: ${line.trim()}`);
  }
}

/** Undefined for other lines, such as log entries. */
function digestOf(line: string, format: LineFormat): string | undefined {
  const text = line.replace(/\r$/, '');
  if (format === 'digest') return /^[\da-f]{64}$/i.test(text) ? text.toLowerCase() : undefined;
  if (!text.startsWith('"')) return sha256(text);
  try {
    return sha256(String(JSON.parse(text)));
  } catch {
    return sha256(text);
  }
}
