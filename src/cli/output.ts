/** The output of the program: one line per event, as text on stderr or as NDJSON on stdout. */
import { styleText } from 'node:util';

import { isoTime, systemClock } from '../core/clock.js';

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

/** Prints events. */
export class Output {
  readonly #options: OutputOptions;
  readonly #isColored: boolean;

  constructor(options: OutputOptions) {
    this.#options = options;
    this.#isColored = process.stderr.isTTY && !process.env['NO_COLOR'];
  }

  /**
   * Prints one event.
   * @param fields names and paths, never contents.
   */
  log(level: LogLevel, event: string, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(this.#options.level)) return;
    const time = isoTime(systemClock.now());
    if (this.#options.json) {
      process.stdout.write(`${JSON.stringify({ time, level, event, message, ...fields })}\n`);
      return;
    }
    const label = level.toUpperCase().padEnd(5);
    const shown = this.#isColored ? styleText(COLORS[level], label) : label;
    process.stderr.write(`${time} ${shown} ${message}\n`);
  }

  /** Prints the result of a command, as text or as one JSON document. */
  result(text: string, document: unknown): void {
    process.stdout.write(this.#options.json ? `${JSON.stringify(document)}\n` : `${text}\n`);
  }
}
