/** Text without secrets. It is always redacted before it is cut, or half a secret could stay. */

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
  /()-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
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
export function redactor(secrets: readonly string[]): (text: string) => string {
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

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
