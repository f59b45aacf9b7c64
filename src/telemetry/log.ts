import { systemClock } from '../core/ports/clock.js';
import { hasMethods, oneOf, resolveOptions } from '../core/options/options.js';
import type { ComponentHandle } from '../core/telemetry/telemetry-messages.js';
import { isolated, observe, type Subscription } from './observe.js';
import { eventOf } from '../core/telemetry/telemetry-points.js';
import { operationOf } from '../core/telemetry/telemetry-operations.js';
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
  const log = (
    { kind, name }: ComponentHandle,
    event: string,
    { level, text }: Line,
    details: object,
  ): unknown => {
    const fields = { event, component: kind, name, ...details };
    const line = `${kind} "${name}": ${text}`.replaceAll(/\n\s*/g, ' ');
    return write(level === 'routine' ? routineLevel : level, fields, line);
  };
  const lines = new RepeatedLines(systemClock);
  const subscription = observe({
    point({ name: event, message }) {
      const { component, ...details } = message;
      const definition = eventOf(component.kind, event);
      const { level = 'routine' } = definition ?? {};
      const text = definition?.text(message) ?? event;
      const cause = definition?.cause?.(message);
      const isRepeated = component.repeated?.includes(event) === true;
      if (cause === undefined)
        return log(component, event, { level: isRepeated ? 'debug' : level, text }, details);
      lines.say(`${component.kind} "${component.name}" ${event} ${cause}`, (more) =>
        isolated(`resilient-watcher:${event}`, () =>
          log(
            component,
            event,
            { level, text: text + sinceLastLine(more) },
            { ...details, ...(more > 0 && { more }) },
          ),
        ),
      );
      return undefined;
    },
    settled({ name: event, message }, durationMs) {
      const { component, ...details } = message;
      const result = message.error ? 'error' : (message.result ?? '');
      const line = operationOf(event, component)?.line?.({ ...message, result });
      if (!line || !component) return undefined;
      return log(component, event, line, { ...details, durationMs: Math.round(durationMs) });
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
