import { redact, shortened } from '../core/redaction.js';

const WORD = /[\p{L}\p{N}]+/gu;

/** Shorter words are hidden only if they are entire words of a value: a long secret contains most pairs of letters. */
const MIN_PART_LENGTH = 3;

/** Longer words are always hidden, because a validator's own text has none. */
const MAX_WORD_LENGTH = 64;

const MAX_MESSAGE_LENGTH = 300;

/** A key of this length that is part of a value is more likely a value than a name. */
const MIN_SUSPICIOUS_KEY_LENGTH = 6;

/**
 * Hides the values of a configuration, any of which may be secret, in the messages of a validator. Libraries quote the
 * values that they refuse (`Expected number but received "s3cret"`), in full, in part or escaped. Every word that is a
 * value, contains a value or is part of one becomes `…`, so a message may lose more words than necessary.
 */
export class ValueRedaction {
  /** All values, plain and escaped as in JSON, in lower case, separated by line feeds, which no word contains. */
  readonly #text: string;
  readonly #values = new Set<string>();
  readonly #shortWords = new Set<string>();
  readonly #verdicts = new Map<string, boolean>();

  constructor(values: unknown) {
    const forms: string[] = [];
    for (const leaf of leavesOf(values)) {
      const value = leaf.toLowerCase();
      for (const form of new Set([value, JSON.stringify(value).slice(1, -1)])) {
        forms.push(form);
        if (form.length > 1 && form.length <= MAX_WORD_LENGTH) this.#values.add(form);
        for (const [word] of form.matchAll(WORD)) {
          if (word.length < MIN_PART_LENGTH) this.#shortWords.add(word);
        }
      }
    }
    this.#text = forms.join('\n');
  }

  /** The message without values and other credentials, shortened to 300 characters after the redaction. */
  message(message: string): string {
    const text = percentDecoded(message);
    let shown = '';
    let end = 0;
    for (const { 0: word, index } of text.matchAll(WORD)) {
      shown += text.slice(end, index) + (this.#hides(word.toLowerCase()) ? '…' : word);
      end = index + word.length;
      if (shown.length > MAX_MESSAGE_LENGTH) break;
    }
    if (shown.length <= MAX_MESSAGE_LENGTH) shown += text.slice(end);
    return shortened(redact(shown), MAX_MESSAGE_LENGTH);
  }

  /**
   * A key that the configuration does not have. A message about a missing key must name it, so the key is hidden only
   * if it looks like an entire value, not just a part of one.
   */
  key(key: string): string {
    const text = percentDecoded(key).toLowerCase();
    const looksLikeValue =
      this.#values.has(text) ||
      text.length > MAX_WORD_LENGTH ||
      (text.length >= MIN_SUSPICIOUS_KEY_LENGTH && this.#text.includes(text)) ||
      this.#containsValue(text, MIN_PART_LENGTH);
    return looksLikeValue ? '…' : key;
  }

  #hides(word: string): boolean {
    const known = this.#verdicts.get(word);
    if (known !== undefined) return known;
    const verdict =
      word.length > MAX_WORD_LENGTH ||
      (word.length < MIN_PART_LENGTH ? this.#shortWords.has(word) : this.#text.includes(word)) ||
      this.#containsValue(word, 2);
    this.#verdicts.set(word, verdict);
    return verdict;
  }

  #containsValue(text: string, minLength: number): boolean {
    for (let start = 0; start < text.length; start += 1) {
      for (let end = start + minLength; end <= text.length; end += 1) {
        if (this.#values.has(text.slice(start, end))) return true;
      }
    }
    return false;
  }
}

/** Messages may quote values percent-encoded, such as credentials in a URL. */
function percentDecoded(text: string): string {
  return text.replace(/(?:%[\da-f]{2})+/gi, (encoded) => {
    try {
      return decodeURIComponent(encoded);
    } catch {
      return encoded; // Not UTF-8.
    }
  });
}

function* leavesOf(value: unknown): Generator<string> {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) yield* leavesOf(member);
  } else if (typeof value === 'string' ? value !== '' : ['number', 'bigint'].includes(typeof value)) {
    yield String(value);
  }
}
