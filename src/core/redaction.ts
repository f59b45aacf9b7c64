/**
 * Text and errors without secrets. What comes from elsewhere (a client, a sink, a parser, a server) may quote a
 * token or a value anywhere, so it is never passed on: only a copy of the few fields that are known to be safe is.
 * Text is always redacted before it is cut, since a cut secret would not be recognized.
 */
import { describe } from './options.js';
import { BackendError, ClosedError, KubernetesError, TargetError, TokenError, WriteError } from './errors.js';

const REDACTED = '[redacted]';

/** Longer messages are cut. */
const LONGEST_TEXT = 1_000;

/** One character of base64url, plain or percent-encoded (any number of times). */
const BASE64URL = String.raw`(?:[\w-]|%(?:25)*(?:3\d|[46][1-9a-fA-F]|[57][\daA]|2[dD]|5[fF]))`;

/** What follows `Bearer` or `token=` and is not a word of a sentence, as in "invalid bearer token". */
const OPAQUE = String.raw`(?=[^\s"'\\&,;<>]*\d|[^\s"'\\&,;<>]{20})[^\s"'\\&,;<>]{8,}`;

/** Credentials that can be recognized without knowing them; what a pattern captures is kept. */
const CREDENTIALS: readonly RegExp[] = [
  // A JWT begins with `{"` in base64url. A JWT that was cut off counts as well.
  new RegExp(
    String.raw`()(?:e|%(?:25)*65)(?:y|%(?:25)*79)(?:J|%(?:25)*4[aA])${BASE64URL}{10,}(?:(?:\.|%(?:25)*2[eE])${BASE64URL}*)*`,
    'g',
  ),
  // The same encoded in base64 again, as in the data of a Secret.
  /()ZXlK[\w+/-]{10,}=*/g,
  new RegExp(String.raw`(\b(?:Bearer|Basic)(?:\s|\+|%20)+)${OPAQUE}`, 'gi'),
  new RegExp(String.raw`(token\\*["']?\s*[:=]\s*\\*["']?)${OPAQUE}`, 'gi'),
];

/** Shorter values are part of too many words to be removed, and are not secrets. */
const SHORTEST_SECRET = 4;

/** Shorter pieces of a secret are not recognized: they could be any word. */
const SHORTEST_FRAGMENT = 12;
const FRAGMENT = new RegExp(`[\\w-]{${SHORTEST_FRAGMENT},}`, 'g');

/**
 * `text` without JWTs, without other credentials that look like credentials, and without `secrets`: whole or in
 * long pieces, plain or percent-encoded. Cut to 1 000 characters.
 */
export function redact(text: string, secrets: readonly string[] = []): string {
  return redactor(secrets)(text);
}

/** `redact` for many texts and the same secrets. */
function redactor(secrets: readonly string[]): (text: string) => string {
  const known = secrets.filter((secret) => secret.length >= SHORTEST_SECRET);
  let encoded: readonly RegExp[] | undefined;
  return (text) => {
    let redacted = text;
    // Before the known secrets: the rest of a token without its beginning would not be recognized.
    for (const pattern of CREDENTIALS) redacted = redacted.replace(pattern, `$1${REDACTED}`);
    for (const secret of known) redacted = redacted.replaceAll(secret, REDACTED);
    if (redacted.includes('%')) {
      encoded ??= known.map(encodingsOf);
      for (const pattern of encoded) redacted = redacted.replace(pattern, REDACTED);
    }
    if (known.length > 0) {
      redacted = redacted.replace(FRAGMENT, (run) =>
        known.some((secret) => secret.includes(run)) ? REDACTED : run,
      );
    }
    return cut(redacted, LONGEST_TEXT);
  };
}

/** A longer secret is recognized by this many of its first characters. */
const RECOGNISED_BY = 512;

/** Matches a text in which any byte may be percent-encoded. */
function encodingsOf(secret: string): RegExp {
  const characters = Array.from(secret.slice(0, RECOGNISED_BY), (character) => {
    const plain = character.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
    const bytes = [...Buffer.from(character).toString('hex').matchAll(/../g)].map(
      ([hex]) => `%(?:25)*${hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)}`,
    );
    return `(?:${plain}|${bytes.join('')})`;
  });
  const rest = secret.length > RECOGNISED_BY ? String.raw`[^\s"'<>]*` : '';
  return new RegExp(characters.join('') + rest, 'g');
}

// ---------------------------------------------------------------------------------------------------- errors

/** Fields that say what failed. Text among them is redacted. */
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
] as const;

const OWN_CLASSES: readonly (abstract new (...args: never[]) => Error)[] = [
  TargetError,
  BackendError,
  TokenError,
  KubernetesError,
  WriteError,
  ClosedError,
];

/** The maximum length of a chain of causes. */
const DEEPEST_CAUSE = 5;

/**
 * What was thrown, as an error that may be shown: a copy with the name, the redacted message, the frames of the stack,
 * the fields that say what failed, and the cause, copied likewise. An error of this library stays one of its class.
 * @param secrets struck out wherever they occur; see `redact`.
 */
export function redactError(thrown: unknown, secrets: readonly string[] = []): Error {
  return copyOf(thrown, redactor(secrets), 0);
}

function copyOf(thrown: unknown, redacted: (text: string) => string, depth: number): Error {
  const clean = (value: unknown): string => redacted(String(value));
  if (!(thrown instanceof Error)) {
    // Nothing of an object is shown: its string form may contain anything, and may throw.
    return new Error(describe(typeof thrown === 'string' ? clean(thrown) : thrown));
  }
  const name = clean(field(thrown, 'name') ?? 'Error');
  const message = clean(field(thrown, 'message') ?? '');
  const cause = field(thrown, 'cause');
  const copy =
    cause === undefined || depth === DEEPEST_CAUSE
      ? new Error(message)
      : new Error(message, { cause: copyOf(cause, redacted, depth + 1) });
  const own = OWN_CLASSES.find(({ prototype }) => Object.getPrototypeOf(thrown) === prototype);
  if (own) Object.setPrototypeOf(copy, own.prototype as object);
  define(copy, 'name', name);
  define(copy, 'stack', [message ? `${name}: ${message}` : name, ...framesOf(thrown, clean)].join('\n'));
  for (const key of SAFE_FIELDS) {
    const value = field(thrown, key);
    if (typeof value === 'string') Object.assign(copy, { [key]: clean(value) });
    if (typeof value === 'number' || typeof value === 'boolean') Object.assign(copy, { [key]: value });
  }
  return copy;
}

/** A field of an error that may be a getter, and may throw. */
function field(error: Error, key: string): unknown {
  try {
    return (error as unknown as Readonly<Record<string, unknown>>)[key];
  } catch {
    return undefined;
  }
}

/** Not enumerable, like that of an ordinary error. */
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

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
