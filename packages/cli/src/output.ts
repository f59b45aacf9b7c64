/** The output of the program: one line per event, as text on stderr or as NDJSON on stdout. */
import { styleText } from 'node:util';

import type { Writable } from 'node:stream';

import { errnoOf, isoTime } from 'resilient-watcher/internal';
import { EXIT, ExitError } from './exit-code.js';
import type { Io } from './io.js';

/** In ascending order of importance. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

type LogLevel = (typeof LOG_LEVELS)[number];

/** The format of the output. */
export interface OutputOptions {
  readonly json: boolean;
  readonly level: LogLevel;
}

const COLORS: Readonly<Record<LogLevel, 'gray' | 'cyan' | 'yellow' | 'red'>> = {
  debug: 'gray',
  info: 'cyan',
  warn: 'yellow',
  error: 'red',
};

/** How much output is kept while nobody reads it, bytes. */
const MAX_UNREAD_BYTES = 2 ** 20;

/** Prints events. */
export class Output {
  readonly #options: OutputOptions;
  readonly #io: Io;
  readonly #isColored: boolean;
  #isLost = false;
  /** Whether a command writes to the same stdout. */
  #isShared = false;
  /** How many events have been dropped since the last one that was printed. */
  #dropped = 0;

  constructor(options: OutputOptions, io: Io) {
    this.#options = options;
    this.#io = io;
    this.#isColored = io.stderr.isTTY === true && !io.env['NO_COLOR'];
  }

  /** From now on a command writes to stdout, too: its last line may have no end, so each document begins a new one. */
  shareStdout(): void {
    this.#isShared = true;
  }

  /**
   * Prints one event.
   * @param fields names and paths, never contents.
   */
  log(level: LogLevel, event: string, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(this.#options.level)) return;
    const { json } = this.#options;
    const { stdout, stderr, clock } = this.#io;
    if ((json ? stdout : stderr).writableLength > MAX_UNREAD_BYTES) {
      this.#dropped += 1;
      return;
    }
    const count = this.#dropped;
    this.#dropped = 0;
    if (count > 0)
      this.log('warn', 'dropped', `${count} events were dropped: nobody read the output`, { count });
    const time = isoTime(clock.now());
    if (json) {
      const begin = this.#isShared ? '\n' : '';
      stdout.write(`${begin}${JSON.stringify({ time, level, event, message, ...fields })}\n`, (error) =>
        this.#written(error),
      );
      return;
    }
    const label = level.toUpperCase().padEnd(5);
    const shown = this.#isColored ? styleText(COLORS[level], label, { stream: stderr }) : label;
    stderr.write(`${time} ${shown} ${visible(message)}\n`);
  }

  /**
   * Prints the result of a command, as text or as one JSON document.
   * @param text its lines; names in it have been through `oneLine()`.
   * @throws {ExitError} (rejects) when it cannot be written, for example to a full disk.
   */
  result(text: string, document: unknown): Promise<void> {
    return print(this.#io.stdout, `${this.#options.json ? JSON.stringify(document) : text}\n`);
  }

  /** A lost event is no reason to end the program. */
  #written(error: Error | null | undefined): void {
    if (!error || this.#isLost || isReaderGone(error)) return;
    this.#isLost = true;
    this.#io.stderr.write(`stdout cannot be written, so events are not shown: ${error.message}\n`);
  }
}

/** @throws {ExitError} (rejects) when it cannot be written, unless its reader is gone. */
export function print(stdout: Writable, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    stdout.write(text, (error) => {
      if (!error || isReaderGone(error)) resolve();
      else reject(new ExitError(EXIT.failed, `stdout cannot be written: ${error.message}`));
    });
  });
}

/**
 * Escapes control characters, and indents all lines but the first: the name of a file may contain anything, and must not
 * pass for another event.
 */
export function visible(message: string): string {
  return message.replace(/\n(?! {2})/g, '\n  ').replace(/[^\n]+/g, oneLine);
}

/** A name as one line: without control characters, line breaks, and what changes the direction of text. */
export function oneLine(name: string): string {
  return name.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function isReaderGone(error: Error): boolean {
  return errnoOf(error) === 'EPIPE';
}
