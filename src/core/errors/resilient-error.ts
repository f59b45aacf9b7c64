/**
 * Errors without secrets. An error from other code (a client, a sink, a listener) may contain a token or a password
 * anywhere, so it is never passed on. It is replaced with a copy of the few fields that are known to be safe.
 */
import type { CodeOf, ErrorCode, ErrorName } from './error-codes.js';
import { describe } from '../options/options.js';
import { redactor } from '../options/redaction.js';
import { ERROR_MARK } from '../process-state.js';

/**
 * Lets `instanceof` recognize the errors of a class also if another copy of the library in this process created them.
 */
export function recognize(type: { readonly prototype: ResilientError }, name: string): void {
  Object.defineProperty(type.prototype, ERROR_MARK, { value: name });
}

const prototypeOf = Object.getPrototypeOf as (object: object) => object | null;

function markOf(prototype: object): unknown {
  return Object.getOwnPropertyDescriptor(prototype, ERROR_MARK)?.value;
}

/**
 * The base of every error of the library. There is one class for each way in which a caller would react. A `cause` from
 * other code is replaced with a copy of its name, redacted message, code and stack. Wrong arguments throw plain
 * `TypeError`s and `RangeError`s.
 */
export abstract class ResilientError extends Error {
  abstract override readonly name: ErrorName;
  /** Stable, and can be switched on; messages may change. */
  abstract readonly code: ErrorCode;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options && withSafeCause(options));
  }

  static override [Symbol.hasInstance](this: { readonly prototype: object }, value: unknown): boolean {
    const { prototype } = this;
    const mark = markOf(prototype);
    for (let type = value instanceof Error ? prototypeOf(value) : null; type; type = prototypeOf(type)) {
      if (type === prototype || (mark !== undefined && markOf(type) === mark)) return true;
    }
    return false;
  }
}
recognize(ResilientError, 'ResilientError');

/** An error with one of the codes of its class. */
export abstract class CodedError<Name extends ErrorName> extends ResilientError {
  abstract override readonly name: Name;
  readonly code: CodeOf<Name>;

  constructor(code: CodeOf<Name>, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Without a cause there is no property: a printed error would show "[cause]: undefined". */
function withSafeCause({ cause }: ErrorOptions): ErrorOptions {
  if (cause === undefined) return {};
  return { cause: cause instanceof ResilientError ? cause : redactError(cause) };
}

/** Fields that say what failed. Text is redacted. */
const SAFE_FIELDS = [
  'code',
  'errno',
  'syscall',
  'status',
  'statusCode',
  'path',
  'backend',
  'sysctl',
  'step',
  'published',
  'retryAfterMs',
  'event',
] as const;

/** Causes below this depth are dropped. */
const DEEPEST_CAUSE = 5;

/**
 * A copy of a thrown value that is safe to show: the name, the redacted message, the frames of the stack, the fields
 * that say what failed, and the cause, copied in the same way. An error of this library keeps its class.
 * @param secrets removed wherever they occur; see `redact`.
 */
export function redactError(thrown: unknown, secrets: readonly string[] = []): Error {
  return copyOf(thrown, redactor(secrets), 0);
}

function copyOf(thrown: unknown, redacted: (text: string) => string, depth: number): Error {
  const clean = (value: unknown): string => redacted(String(value));
  if (!(thrown instanceof Error)) {
    // Nothing of an object is shown, because its `toString()` may return anything, or throw.
    return new Error(describe(typeof thrown === 'string' ? clean(thrown) : thrown));
  }
  const name = clean(field(thrown, 'name') ?? 'Error');
  const message = clean(field(thrown, 'message') ?? '');
  const cause = field(thrown, 'cause');
  const copy =
    cause === undefined || depth === DEEPEST_CAUSE
      ? new Error(message)
      : new Error(message, { cause: copyOf(cause, redacted, depth + 1) });
  if (thrown instanceof ResilientError) {
    Object.setPrototypeOf(copy, Object.getPrototypeOf(thrown) as object);
    const problems = field(thrown, 'problems');
    if (Array.isArray(problems)) {
      const shown = (problems as readonly { message: unknown }[]).map((problem) => ({
        ...problem,
        message: clean(problem.message),
      }));
      Object.assign(copy, { problems: shown });
    }
  }
  define(copy, 'name', name);
  define(copy, 'stack', [message ? `${name}: ${message}` : name, ...framesOf(thrown, clean)].join('\n'));
  for (const key of SAFE_FIELDS) {
    const value = field(thrown, key);
    if (typeof value === 'string') Object.assign(copy, { [key]: clean(value) });
    if (typeof value === 'number' || typeof value === 'boolean') Object.assign(copy, { [key]: value });
  }
  return copy;
}

/** A field of an error; undefined if it is a getter that throws. */
function field(error: Error, key: string): unknown {
  try {
    return (error as unknown as Readonly<Record<string, unknown>>)[key];
  } catch {
    return undefined;
  }
}

/** Defines a field that is not enumerable, as in an ordinary error. */
function define(error: Error, key: 'name' | 'stack', value: string): void {
  Object.defineProperty(error, key, { value, configurable: true, writable: true });
}

const FRAME = /^ {4}at .+$/gm;
const MOST_FRAMES = 10;

function framesOf(error: Error, clean: (text: unknown) => string): string[] {
  const stack = field(error, 'stack');
  const frames = typeof stack === 'string' ? (stack.match(FRAME) ?? []) : [];
  return frames.slice(0, MOST_FRAMES).map(clean);
}
