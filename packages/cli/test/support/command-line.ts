/** The program `resilient-watcher` in this process: what tests need to know of it is all in its `Io`. */
import { EventEmitter } from 'node:events';
import { appendFileSync, closeSync, fstatSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';

import { systemClock, type Clock } from 'resilient-watcher';
import { onTestFailed, onTestFinished } from 'vitest';

import { main } from '../../src/program.js';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';

/** What a command line is given. */
export interface CommandLineOptions {
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** The whole of its stdin. Default: empty. */
  readonly input?: string;
  /** Default: the system clock. */
  readonly clock?: Clock;
  readonly isTTY?: boolean;
  /** Called where PID 1 would let an init take its place. */
  readonly becomeInit?: () => Promise<void>;
}

/** What a command line has led to. */
export interface CommandLineOutcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A file, since the commands that the program starts need descriptors, and write to the same place. */
class Recording {
  readonly descriptor: number;
  readonly stream: Writable;
  /** What is written waits for it. */
  reading: Promise<void> | undefined;
  readonly #path: string;
  #text = '';
  #size = 0;
  #isClosed = false;

  constructor(directory: string, name: string) {
    this.#path = join(directory, name);
    const descriptor = (this.descriptor = openSync(this.#path, 'a'));
    const record = (chunk: string, written: () => void): void => {
      appendFileSync(descriptor, chunk);
      written();
    };
    this.stream = new Writable({
      decodeStrings: false,
      write: (chunk: string, _, written) => {
        if (this.reading) void this.reading.then(() => record(chunk, written));
        else record(chunk, written);
      },
    });
  }

  /** Bytes. */
  get size(): number {
    return this.#isClosed ? this.#size : fstatSync(this.descriptor).size;
  }

  get text(): string {
    const { size } = this;
    if (size !== this.#size) this.#text = readFileSync(this.#path, 'utf8');
    this.#size = size;
    return this.#text;
  }

  /** The file may go, the text stays. */
  close(): void {
    this.#text = this.text;
    this.#isClosed = true;
    closeSync(this.descriptor);
  }
}

/** A command line that runs. */
export class CommandLine {
  readonly exit: Promise<number>;
  readonly #signals = new EventEmitter();
  readonly #stdout: Recording;
  readonly #stderr: Recording;
  #isOver = false;

  constructor(args: readonly string[], options: CommandLineOptions = {}) {
    const directory = temporaryDirectory();
    const stdout = (this.#stdout = new Recording(directory, 'stdout'));
    const stderr = (this.#stderr = new Recording(directory, 'stderr'));
    const input = options.input ?? '';
    writeFileSync(join(directory, 'stdin'), input);
    const stdin = openSync(join(directory, 'stdin'), 'r');
    const ending = main(args, {
      stdin: () => Readable.from([input]),
      stdout: stdout.stream,
      stderr: Object.assign(stderr.stream, { isTTY: options.isTTY ?? false }),
      descriptors: [stdin, stdout.descriptor, stderr.descriptor],
      env: { ...process.env, ...options.env },
      signals: this.#signals,
      clock: options.clock ?? systemClock,
      becomeInit: options.becomeInit,
    });
    this.exit = ending.finally(() => (this.#isOver = true));
    onTestFailed(() => console.error(`${args.join(' ')} has printed:\n${this.stdout}${this.stderr}`));
    onTestFinished(async () => {
      this.signal('SIGTERM');
      await this.exit;
      closeSync(stdin);
      for (const recording of [stdout, stderr]) recording.close();
    });
  }

  get stdout(): string {
    return this.#stdout.text;
  }

  get stderr(): string {
    return this.#stderr.text;
  }

  /** Reads nothing of its stdout until the function that is returned is called. */
  stopReading(): () => void {
    let read = (): void => undefined;
    const reading = new Promise<void>((resolve) => (read = resolve));
    this.#stdout.reading = reading.then(() => (this.#stdout.reading = undefined));
    return read;
  }

  /** As if the process got this signal. */
  signal(name: NodeJS.Signals): void {
    this.#signals.emit(name, name);
  }

  /** Resolves with the match when it, or a command that it started, has printed this; rejects when it ends without. */
  until(pattern: RegExp): Promise<RegExpExecArray> {
    return this.when(() => pattern.exec(`${this.stderr}\n${this.stdout}`) ?? undefined, String(pattern));
  }

  /** Resolves with what `find` finds, called whenever something was printed; rejects when the program ends without. */
  async when<T>(find: () => T | undefined, wanted: string): Promise<T> {
    let searched = -1;
    for (;;) {
      const isOver = this.#isOver;
      const printed = this.#stdout.size + this.#stderr.size;
      const found = printed === searched ? undefined : find();
      if (found !== undefined) return found;
      if (isOver) throw new Error(`It ended without ${wanted}\n${this.stdout}${this.stderr}`);
      searched = printed;
      await delay(2);
    }
  }

  /** Resolves with its exit code and everything it printed. */
  async finished(): Promise<CommandLineOutcome> {
    const code = await this.exit;
    return { code, stdout: this.stdout, stderr: this.stderr };
  }

  /** Sends it SIGTERM, and resolves with its exit code. */
  terminated(): Promise<number> {
    this.signal('SIGTERM');
    return this.exit;
  }
}

/** Starts a command line. */
export function startMain(args: readonly string[], options?: CommandLineOptions): CommandLine {
  return new CommandLine(args, options);
}

/** Runs a command line to its end. */
export function runMain(args: readonly string[], options?: CommandLineOptions): Promise<CommandLineOutcome> {
  return startMain(args, options).finished();
}
