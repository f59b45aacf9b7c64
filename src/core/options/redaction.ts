/**
 * Removes credentials from text: known ones, and those recognized by their form. Text is always redacted before it is
 * shortened, because otherwise half a secret could remain.
 */

export const REDACTED = '[redacted]';

/** Longer messages are shortened. */
const LONGEST_TEXT = 1_000;

/** One character of base64url, plain or percent-encoded (any number of times). */
const BASE64URL = String.raw`(?:[\w-]|%(?:25)*(?:3\d|[46][1-9a-fA-F]|[57][\daA]|2[dD]|5[fF]))`;

/** The name of a secret: `token`, `access_token`, `apiKey`, `client-secret`, `PASSWORD`. */
export const SECRET_NAME = String.raw`(?:token|secret|passw(?:or)?d|passphrase|pwd|(?:api|access|private|account)[_-]?key)`;

/** Between a name and its value, percent-encoded or not. */
const ASSIGNMENT = String.raw`(?:[:=]|%(?:25)*3[aAdD])`;

/** A value after `Bearer` or `token:`, as opposed to a word of a sentence such as "invalid bearer token". */
const OPAQUE = String.raw`(?=[^\s"'\\&,;<>]*\d|[^\s"'\\&,;<>]{20})[^\s"'\\&,;<>]{8,}`;

/**
 * Credentials that are recognized by their form. The capture group of a pattern is kept. Each pattern takes linear
 * time, because others may have written the text: two repetitions of the same characters never follow each other.
 */
const CREDENTIALS: readonly RegExp[] = [
  // A JWT begins with `{"` in base64url. A truncated one is removed as well.
  new RegExp(
    String.raw`()(?:e|%(?:25)*65)(?:y|%(?:25)*79)(?:J|%(?:25)*4[aA])${BASE64URL}{10,}(?:(?:\.|%(?:25)*2[eE])${BASE64URL}*)*`,
    'g',
  ),
  // A JWT encoded in base64 again, as in the data of a Secret, perhaps after other text.
  /()(?:ZXlK|[GWm2]V5S|leU[opqr])[\w+/-]{10,}=*/g,
  // The password in a URL.
  /(:\/\/[^\s/@:"'<>]{0,256}:)[^\s/@"'<>]{1,1024}(?=@)/g,
  /()-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  new RegExp(String.raw`(\b(?:Bearer|Basic)(?:\s|\+|%20)+)${OPAQUE}`, 'gi'),
  // `password=x`, `"password":"x"`, and `password: x` if the value is not a word of a sentence.
  new RegExp(String.raw`(${SECRET_NAME}(?:=|%(?:25)*3[dD]))[^\s"'\\&,;<>]+`, 'gi'),
  new RegExp(String.raw`(${SECRET_NAME}\\*["']?\s*${ASSIGNMENT}\s*\\*["'])[^"'\\]+`, 'gi'),
  new RegExp(String.raw`(${SECRET_NAME}\\*["']?\s*${ASSIGNMENT}\s*)${OPAQUE}`, 'gi'),
  // A header: all cookies to the end of the line or of the surrounding string.
  /(\b(?:Set-)?Cookie\\*["']?\s*[:=]\s*(?:\[\s*)?\\*["']?)[^\r\n"'\\]+/gi,
];

/** Shorter values occur in too many words to be removed, and are not secrets. */
const SHORTEST_SECRET = 4;

/** Shorter pieces of a secret are not recognized, because they could be any word. */
const SHORTEST_FRAGMENT = 12;
const FRAGMENT = new RegExp(`[\\w-]{${SHORTEST_FRAGMENT},}`, 'g');

/**
 * `text` without JWTs, other recognizable credentials and `secrets`: whole or in long pieces, plain or
 * percent-encoded, or whole in base64 or hex. Shortened to 1,000 characters.
 */
export function redact(text: string, secrets: readonly string[] = []): string {
  return redactor(secrets)(text);
}

/** `redact` for many texts and the same secrets. */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const known = secrets.filter((secret) => secret.length >= SHORTEST_SECRET);
  const forms = known.flatMap((secret) => [
    secret,
    // A text with a token in it.
    withoutCredentials(secret),
    ...base64FormsOf(secret),
    ...hexFormsOf(secret),
  ]);
  let encoded: readonly RegExp[] | undefined;
  return (text) => {
    // Before known secrets are removed, because a token without its beginning would not be recognized.
    let redacted = withoutCredentials(text);
    for (const secret of forms) redacted = redacted.replaceAll(secret, REDACTED);
    if (redacted.includes('%')) {
      encoded ??= known.map(encodingsOf);
      for (const pattern of encoded) redacted = redacted.replace(pattern, REDACTED);
    }
    if (known.length > 0) {
      redacted = redacted.replace(FRAGMENT, (run) =>
        known.some((secret) => secret.includes(run)) ? REDACTED : run,
      );
    }
    return shortened(redacted, LONGEST_TEXT);
  };
}

function withoutCredentials(text: string): string {
  return CREDENTIALS.reduce((rest, pattern) => rest.replace(pattern, `$1${REDACTED}`), text);
}

/** Shorter base64 occurs in too many other values. */
const SHORTEST_BASE64 = 8;

/** A text in base64, without the characters that depend on what comes before and after it. */
function base64FormsOf(secret: string): string[] {
  return [0, 1, 2].flatMap((offset) => {
    const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
    const [start, end] = [Math.ceil((offset * 4) / 3), Math.floor((bytes.length * 4) / 3)];
    const forms = [bytes.toString('base64').slice(start, end), bytes.toString('base64url').slice(start, end)];
    return forms.filter((form) => form.length >= SHORTEST_BASE64);
  });
}

/** In lower and in upper case: encoders do not mix them. */
function hexFormsOf(secret: string): string[] {
  const hex = Buffer.from(secret).toString('hex');
  return [hex, hex.toUpperCase()];
}

/** A longer secret is recognized by this many of its first characters. */
const RECOGNIZED_BY = 512;

/** Matches a text in which any byte may be percent-encoded. */
function encodingsOf(secret: string): RegExp {
  const characters = Array.from(secret.slice(0, RECOGNIZED_BY), (character) => {
    const plain = character.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
    const bytes = [...Buffer.from(character).toString('hex').matchAll(/../g)].map(
      ([hex]) => `%(?:25)*${hex.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)}`,
    );
    return `(?:${plain}|${bytes.join('')})`;
  });
  const rest = secret.length > RECOGNIZED_BY ? String.raw`[^\s"'<>]*` : '';
  return new RegExp(characters.join('') + rest, 'g');
}

/** At most this many characters of a text, and an ellipsis if there are more. */
export function shortened(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
