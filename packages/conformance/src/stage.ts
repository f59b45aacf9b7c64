import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { Disk } from './disk.js';
import { Guardian } from './guardian.js';
import { SequenceRecord } from './record.js';
import { TestedProgram, type LineFormat } from './tested-program.js';
import { Timeline } from './timeline.js';
import { witness } from './witness.js';

/** Options of a stage. */
export interface StageOptions {
  /** The command under test; `{path}` in it becomes the path to watch. */
  readonly command: readonly string[];
  readonly lines: LineFormat;
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  /** Where the directory is created. */
  readonly parent: string | undefined;
  readonly contentOf: ((text: string) => string) | undefined;
}

/** How the program is started for a sequence. */
export interface StartOptions {
  /** A command that runs the command after it, as `unshare` does. */
  readonly prefix?: readonly string[];
  readonly user?: { readonly uid: number; readonly gid: number };
  /** The path for the reference reader, if it differs from the program's. */
  readonly witnessPath?: string;
}

/** Puts the contents where the program will find them. */
export type Publish = (content: string) => void | Promise<void>;

/** The start of a runtime and its watcher may take this many deadlines. */
const STARTING_FACTOR = 4;
/** After a program has printed the first state, nothing changes for this long, ms. */
const ARMING_MS = 200;
/** How long the stage waits for false lines after the last state, ms. */
const QUIET_MS = 250;
/** Up to this many deadlines, a state is late, not missed. */
const LATE_FACTOR = 2;
const POLL_MS = 10;

const EXPECTED = {
  held: 'must be shown',
  passing: 'may be passed over',
  partial: 'is unfinished and must not be shown',
} as const;

/** Ends a sequence: the program has ended, prints nothing, or has missed a state, so the rest proves nothing more. */
export class StageOver extends Error {}

/** Plays one sequence: its directory, the program, and the record of both. */
export class Stage {
  /** Removed at the end. Any user may enter it. */
  readonly directory: string;
  readonly record = new SequenceRecord(() => this.directory);
  /** The system calls of the publishers. */
  readonly disk = new Disk((call) => this.record.add('call', call));
  readonly program = new Timeline();
  readonly reference = new Timeline();
  /** Why the program has ended; undefined while it runs. */
  crash: string | undefined;
  readonly #options: StageOptions;
  readonly #guardian: Guardian;
  readonly #run = randomName();
  readonly #end = new AbortController();
  #witness: Promise<void> | undefined;
  #tested: TestedProgram | undefined;
  #contents = 0;

  constructor(options: StageOptions) {
    this.#options = options;
    this.directory = mkdtempSync(join(options.parent ?? tmpdir(), 'conformance-'));
    this.#guardian = new Guardian(this.directory);
    chmodSync(this.directory, 0o755);
  }

  /** A path below {@link directory}. */
  path(...names: readonly string[]): string {
    return join(this.directory, ...names);
  }

  /** New contents, of the same length each time. */
  content(): string {
    this.#contents += 1;
    const text = `state ${String(this.#contents).padStart(6, '0')} of ${this.#run}`;
    return this.#options.contentOf?.(text) ?? text;
  }

  /** Publishes the first state, and starts the program, which must show it. */
  async start(path: string, publish: Publish, options?: StartOptions): Promise<void> {
    await this.pass(publish);
    this.launch(path, options);
    if (!(await this.#areCurrent(this.#options.deadlineMs * STARTING_FACTOR))) throw new StageOver();
    await this.pause(ARMING_MS);
  }

  /** Starts the program without waiting. */
  launch(path: string, { prefix = [], user, witnessPath = path }: StartOptions = {}): void {
    const { command, lines } = this.#options;
    this.#witness = witness(
      witnessPath,
      (digest) => void this.reference.line(digest, performance.now()),
      this.#end.signal,
    );
    this.#tested = new TestedProgram({
      command: [...prefix, ...command.map((part) => part.replaceAll('{path}', path))],
      lines,
      user,
      onDigest: (digest) => this.record.add('stdout', this.program.line(digest, performance.now())),
      onOther: (stream, line) => {
        this.record.add(stream, line);
        if (stream === 'stdout') this.program.other(line);
      },
      onEnd: (reason) => {
        this.record.add('suite', `the program ${reason}`);
        this.crash ??= reason;
      },
    });
    this.#guardian.watch(this.#tested.group);
  }

  /** Publishes a state that has to be seen, and waits until it is shown, at most for the deadline. */
  async show(publish: Publish, content = this.content()): Promise<void> {
    this.#add(content, 'held');
    const publishing = publish(content);
    await publishing;
    await this.#hold(this.#options.deadlineMs, !(publishing instanceof Promise));
  }

  /** Publishes a state that may be passed over. */
  async pass(publish: Publish, content = this.content()): Promise<void> {
    this.#add(content, 'passing');
    await publish(content);
  }

  /** Announces a part of what is being written, which must not be shown. The next state follows. */
  part(content: string): void {
    this.#add(content, 'partial');
  }

  /** Rejects when the suite ends. */
  pause(ms: number): Promise<void> {
    return sleep(ms, undefined, { signal: this.#options.signal });
  }

  /** Stops the program (SIGSTOP) while `act` runs. */
  async suspended(act: () => void | Promise<void>): Promise<void> {
    this.#tested?.signal('SIGSTOP');
    this.record.add('suite', 'stops the program (SIGSTOP)');
    try {
      await act();
    } finally {
      this.#tested?.signal('SIGCONT');
      this.record.add('suite', 'continues the program (SIGCONT)');
    }
  }

  /** Waits for false lines after the last state. */
  finish(): Promise<void> {
    return this.pause(QUIET_MS);
  }

  /** Kills the program, and removes the files. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#tested?.kill();
    await this.#witness;
    this.disk.closeAll();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 });
    await this.#guardian.dismiss();
  }

  #add(content: string, kind: 'held' | 'passing' | 'partial'): void {
    const now = performance.now();
    for (const timeline of [this.program, this.reference]) timeline.add(content, kind, now);
    this.record.add('suite', `publishes ${this.program.newest}, which ${EXPECTED[kind]}`);
  }

  /** @throws {StageOver} for a state that was missed. */
  async #hold(deadlineMs: number, isTimed: boolean): Promise<void> {
    await this.#areCurrent(deadlineMs);
    const timelines = [this.program, this.reference];
    const inTime = timelines.filter(({ isCurrent }) => isCurrent);
    await this.#areCurrent(deadlineMs * (LATE_FACTOR - 1));
    const now = performance.now();
    const seen = timelines.filter(({ isCurrent }) => isCurrent);
    for (const timeline of seen) timeline.accept(now, isTimed, inTime.includes(timeline));
    if (seen.length < timelines.length) throw new StageOver();
  }

  /**
   * Waits until the program and the reference reader show the newest state, and resolves to whether they did in time.
   * @throws {StageOver} for a program that has ended.
   */
  async #areCurrent(timeoutMs: number): Promise<boolean> {
    const deadline = performance.now() + timeoutMs;
    while (!this.program.isCurrent || !this.reference.isCurrent) {
      if (this.crash !== undefined) throw new StageOver();
      if (performance.now() >= deadline) return false;
      await this.pause(POLL_MS);
    }
    return true;
  }
}

function randomName(): string {
  return Math.floor(Math.random() * 2 ** 48)
    .toString(16)
    .padStart(12, '0');
}
