/** Runs the program under test: a process group whose standard output is read line by line. */
import { sha256 } from './contents.js';
import { ProcessGroup } from './process-group.js';

/** What a line of the program contains: the SHA-256 of the contents, or the contents. */
export type LineFormat = 'digest' | 'content';

/** How a program is started. */
export interface ProgramOptions {
  readonly command: readonly string[];
  readonly lines: LineFormat;
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** Beside those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Called for each state that the program shows. */
  readonly onDigest: (digest: string) => void;
  /** Called for each line on stdout that is no digest, and for each line on stderr. */
  readonly onOther: (stream: 'stdout' | 'stderr', line: string) => void;
  /** Called when the program has ended or could not be started. */
  readonly onEnd: (reason: string) => void;
}

/** The maximum length of a line, characters; the largest content is 1 MiB, and JSON may escape all of it. */
const LONGEST_LINE = 8 * 2 ** 20;
/** The maximum length of the output on stderr that is kept, characters. */
const SHOWN_ERROR = 4_000;

/** A running program. */
export class TestedProgram {
  readonly #group: ProcessGroup;
  readonly #options: ProgramOptions;
  #rest = '';
  #errors = '';
  #errorLine = '';
  #isEnding = false;

  /** @throws {Error} when it cannot be spawned at all, for example with E2BIG. */
  constructor(options: ProgramOptions) {
    this.#options = options;
    this.#group = new ProcessGroup(options.command, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...options.env },
      ...options.user,
    });
    const { stdout, stderr } = this.#group.child;
    stdout?.setEncoding('utf8').on('data', (chunk: string) => this.#read(chunk));
    stderr?.setEncoding('utf8').on('data', (chunk: string) => this.#readError(chunk));
    void this.#group.ended.then((reason) => this.#ended(reason));
  }

  /** The number of its process group; undefined if it could not be started. */
  get group(): number | undefined {
    return this.#group.child.pid;
  }

  /** The numbers of its processes. */
  get processes(): string[] {
    return this.#group.members;
  }

  /** Stops or continues all processes of the program. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#group.signal(signal);
  }

  /** Kills the process group, and resolves when it has ended. */
  async kill(): Promise<void> {
    this.#isEnding = true;
    await this.#group.kill();
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = (lines.pop() ?? '').slice(0, LONGEST_LINE);
    if (this.#isEnding) return;
    for (const line of lines) {
      const digest = digestOf(line, this.#options.lines);
      if (digest === undefined) this.#options.onOther('stdout', line);
      else this.#options.onDigest(digest);
    }
  }

  #readError(chunk: string): void {
    this.#errors = (this.#errors + chunk).slice(-SHOWN_ERROR);
    const lines = (this.#errorLine + chunk).split('\n');
    this.#errorLine = (lines.pop() ?? '').slice(0, SHOWN_ERROR);
    for (const line of lines) if (!this.#isEnding) this.#options.onOther('stderr', line);
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
