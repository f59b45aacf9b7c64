import { systemClock } from '../core/ports/clock.js';
import { hasMethods, oneOf, resolveOptions } from '../core/options/options.js';
import type { ComponentHandle } from '../core/telemetry/telemetry-messages.js';
import { isolated, observe, type Operation, type Subscription } from './observe.js';
import { eventOf, textOf } from '../core/telemetry/telemetry-points.js';
import { operationOf } from './operations.js';
import { RepeatedLines, sinceLastLine } from './repeated-lines.js';

type Level = 'debug' | 'info' | 'warn' | 'error';
type Write = (fields: object, message: string) => unknown;

/** A logger in the style of pino: first the fields, then the text. */
export type StructuredLogger = Readonly<Record<Level, Write>>;

/** Options of `logTo`. */
export interface LogOptions {
  /**
   * The level of routine events: starts, changes, restarts of a backend, tokens and accepted configurations. Events
   * that need attention are `warn`, and failures that do not recover by themselves `error`. Events of a watcher that
   * its owner also reports are `debug`. Default `info`.
   */
  readonly level?: 'debug' | 'info' | undefined;
}

const LEVELS: readonly Level[] = ['debug', 'info', 'warn', 'error'];

const OPTIONS = { level: oneOf<'debug' | 'info'>('info', ['debug', 'info']) };

interface Line {
  readonly level: Level | 'routine';
  readonly text: string;
}

const routine = (text: string): Line => ({ level: 'routine', text });
const warning = (text: string): Line => ({ level: 'warn', text });

/**
 * Logs one line for each event of every component of this process, until the result is closed. Of events that many pods
 * have for one reason, it is one line a minute, with their number. Lines contain names,
 * paths, keys and error messages, never contents, tokens or secret values.
 *
 * ```ts
 * logTo(pino());
 * logTo(console, { level: 'debug' });
 * ```
 * @param logger `console`, which prints the texts, or an object with `debug`, `info`, `warn` and `error`, called as in
 * pino with fields and a text.
 * @throws {TypeError} for a logger without these methods, or a wrong option.
 */
export function logTo(logger: StructuredLogger | Console, options?: LogOptions): Subscription {
  const { level: routineLevel } = resolveOptions('logTo', options, OPTIONS);
  if (!hasMethods(logger, LEVELS)) {
    throw new TypeError(`logTo: the logger must have the methods ${LEVELS.join(', ')}`);
  }
  const write = writerTo(logger);
  // Returns what the logger returns: the rejection of an asynchronous one is handled.
  const log = ({ level, text }: Line, fields: object): unknown =>
    write(level === 'routine' ? routineLevel : level, fields, text.replaceAll(/\n\s*/g, ' '));
  const lines = new RepeatedLines(systemClock);
  const subscription = observe({
    point(point) {
      const { component, ...details } = point.message;
      const definition = eventOf(component.kind, point.name);
      const { level = 'routine' } = definition ?? {};
      const text = definition?.text(point.message) ?? point.name;
      const cause = definition?.cause?.(point.message);
      const isRepeated = component.repeated?.includes(point.name);
      const fields = { event: point.name, component: component.kind, name: component.name, ...details };
      const line = `${titleOf(component)}: ${text}`;
      if (cause === undefined)
        return log({ level: isRepeated === true ? 'debug' : level, text: line }, fields);
      lines.say(`${titleOf(component)} ${point.name} ${cause}`, (more) =>
        isolated(`resilient-watcher:${point.name}`, () =>
          log({ level, text: line + sinceLastLine(more) }, { ...fields, ...(more > 0 && { more }) }),
        ),
      );
      return undefined;
    },
    settled(operation, durationMs) {
      const line = lineOfOperation(operation);
      if (!line) return undefined;
      const { component, ...details } = operation.message;
      const source = component && { component: component.kind, name: component.name };
      return log(line, { event: operation.name, ...source, ...details, durationMs: Math.round(durationMs) });
    },
  });
  const close = (): void => {
    subscription.close();
    lines.close();
  };
  return { close, [Symbol.dispose]: close };
}

function writerTo(
  logger: StructuredLogger | Console,
): (level: Level, fields: object, text: string) => unknown {
  if (!isConsole(logger)) return (level, fields, text) => logger[level](fields, text);
  return (level, _fields, text) => {
    logger[level](text);
  };
}

/** A console prints fields on several lines. Only consoles, including custom ones, have `table`. */
function isConsole(logger: StructuredLogger | Console): logger is Console {
  return 'table' in logger;
}

function titleOf({ kind, name }: ComponentHandle): string {
  return `${kind} "${name}"`;
}

function lineOfOperation(operation: Operation): Line | undefined {
  const { name, message } = operation;
  const { component, error, result = '' } = message;
  const what = operationOf(operation)?.title;
  if (what === undefined || !component || result === 'unchanged' || result === 'skipped') return undefined;
  const who = titleOf(component);
  if (error && name === 'token.request') return undefined;
  if (error) return warning(`${who}: ${what} failed: ${textOf(error)}`);
  if (result === 'kept') return warning(`${who}: publication failed, the last good contents stay`);
  return routine(`${who}: ${what} ${result}`);
}
