import { hasMethods, oneOf, resolveOptions } from '../core/options.js';
import { observe, type Operation, type Point, type Subscription } from './observe.js';

type Level = 'debug' | 'info' | 'warn' | 'error';
type Write = (fields: object, message: string) => void;

/** A logger in the style of pino: first the fields, then the text. */
export type StructuredLogger = Readonly<Record<Level, Write>>;

/** Options of `logTo`. */
export interface LogOptions {
  /**
   * The level of routine events: starts, changes, restarts of a backend, tokens and accepted configurations. What
   * needs attention is `warn`, what does not heal by itself `error`. Default `info`.
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
 * Logs one line for each event of every component of this process, until it is closed. Lines hold names, paths, keys
 * and error messages, never contents, tokens or secret values.
 *
 * ```ts
 * logTo(pino());
 * logTo(console, { level: 'debug' });
 * ```
 * @param logger has `debug`, `info`, `warn` and `error`, called with fields and a text as pino has it; or `console`.
 * @throws {TypeError} for a logger without these methods, or a wrong option.
 */
export function logTo(logger: StructuredLogger | Console, options?: LogOptions): Subscription {
  const { level: routineLevel } = resolveOptions('logTo', options, OPTIONS);
  if (!hasMethods(logger, LEVELS)) {
    throw new TypeError(`logTo: the logger must have the methods ${LEVELS.join(', ')}`);
  }
  const write = writerTo(logger);
  const log = ({ level, text }: Line, fields: object): void => {
    write(level === 'routine' ? routineLevel : level, fields, text);
  };
  return observe({
    point(point) {
      const { component, ...details } = point.message;
      log(lineOf(point), { component: component.kind, name: component.name, ...details });
    },
    settled(operation, durationMs) {
      const line = lineOfOperation(operation);
      if (!line) return;
      const { component, ...details } = operation.message;
      const source = component && { component: component.kind, name: component.name };
      log(line, { ...source, ...details, durationMs: Math.round(durationMs) });
    },
  });
}

function writerTo(logger: StructuredLogger | Console): (level: Level, fields: object, text: string) => void {
  if (!isConsole(logger)) return (level, fields, text) => logger[level](fields, text);
  return (level, fields, text) => logger[level](text, fields);
}

/** A console prints its arguments in order. Only consoles have `table`, custom ones included. */
function isConsole(logger: StructuredLogger | Console): logger is Console {
  return 'table' in logger;
}

function lineOf({ name, message }: Point): Line {
  const who = `${message.component.kind} "${message.component.name}"`;
  switch (name) {
    case 'start':
      return routine(`${who}: started`);
    case 'close':
      return routine(`${who}: closed`);
    case 'healthy':
      return routine(`${who}: healthy`);
    case 'change':
      return routine(`${who}: changed`);
    case 'restart':
      return routine(`${who}: subscribing again, attempt ${message.attempt}`);
    case 'recovered':
      return routine(`${who}: native watching is back`);
    case 'readable':
      return routine(`${who}: readable again`);
    case 'degraded':
      return warning(`${who}: degraded to polling: ${said(message.error)}`);
    case 'warning':
      return warning(`${who}: ${message.message}`);
    case 'unreadable':
      return warning(`${who}: unreadable: ${said(message.error)}`);
    case 'rejected': {
      const { problems, error } = message;
      const why = problems?.map((problem) => problem.message).join('; ') ?? (error && said(error)) ?? '';
      return warning(`${who}: update rejected: ${why}`);
    }
    case 'unhealthy':
      return warning(`${who}: unhealthy: ${said(message.error)}`);
    case 'error':
      return { level: 'error', text: `${who}: ${said(message.error)}` };
  }
}

/** Checks and writes are too many for a log, and a reload is one event with its change or rejection. */
function lineOfOperation({ name, message }: Operation): Line | undefined {
  if (name !== 'token.request' && name !== 'token.delivery' && name !== 'publish' && name !== 'action')
    return undefined;
  const who = `${message.component.kind} "${message.component.name}"`;
  const what = {
    'token.request': 'token request',
    'token.delivery': 'token delivery',
    publish: 'publication',
    action: 'action',
  };
  if (message.error) return warning(`${who}: ${what[name]} failed: ${said(message.error)}`);
  const { result = '' } = message;
  switch (result) {
    case 'unchanged':
    case 'skipped':
      return undefined;
    case 'kept':
      return warning(`${who}: publication failed, the last good contents stay`);
    default:
      return routine(`${who}: ${what[name]} ${result}`);
  }
}

function said({ message, code, name }: { message: string; code: string | null; name: string }): string {
  return message === '' ? (code ?? name) : message;
}
