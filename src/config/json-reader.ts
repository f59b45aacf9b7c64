import { lineAt, ParseFailure } from './parser.js';

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
/** Ends a run of ordinary characters in a string. A pattern for whole strings would exhaust the stack. */
const STRING_STOP = /["\\\u0000-\u001f]/g;
const WORD = /true|false|null/y;

/** Deeper than any configuration, but far from exhausting the stack. */
const MAX_DEPTH = 500;

/**
 * Parses JSON and reports the line and column of errors. `JSON.parse` silently takes the last of two equal keys, and its
 * messages quote the text.
 */
export class JsonReader {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** @throws {ParseFailure} with line and column. */
  read(): unknown {
    const value = this.#value();
    if (this.#peek() !== undefined) throw this.#wrong('expected the end of the text');
    return value;
  }

  #value(): unknown {
    switch (this.#peek()) {
      case '{':
        return this.#nested(() => this.#object());
      case '[':
        return this.#nested(() => this.#array());
      case '"':
        return this.#string();
      case undefined:
      default: {
        const token = this.#take(NUMBER) ?? this.#take(WORD);
        if (token === undefined) throw this.#wrong('expected a value');
        return JSON.parse(token) as unknown;
      }
    }
  }

  #object(): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    this.#list('}', () => {
      if (this.#peek() !== '"') throw this.#wrong('expected a key in double quotes');
      const start = this.#at;
      const key = this.#string();
      if (Object.hasOwn(object, key)) throw this.#wrong(`duplicate key "${key}"`, start);
      if (this.#peek() !== ':') throw this.#wrong('expected ":" after a key');
      this.#at += 1;
      // Plain assignment would lose a key "__proto__" before it can be refused.
      const property = { value: this.#value(), writable: true, enumerable: true, configurable: true };
      Object.defineProperty(object, key, property);
    });
    return object;
  }

  #array(): unknown[] {
    const array: unknown[] = [];
    this.#list(']', () => array.push(this.#value()));
    return array;
  }

  /** Reads from the opening bracket to the closing one. */
  #list(end: string, member: () => void): void {
    this.#at += 1;
    if (this.#peek() === end) {
      this.#at += 1;
      return;
    }
    for (;;) {
      member();
      const next = this.#peek();
      if (next !== ',' && next !== end) throw this.#wrong(`expected "," or "${end}"`);
      this.#at += 1;
      if (next === end) return;
    }
  }

  #nested<T>(read: () => T): T {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) throw this.#wrong(`nested more than ${MAX_DEPTH} levels deep`);
    const value = read();
    this.#depth -= 1;
    return value;
  }

  #string(): string {
    const start = this.#at;
    STRING_STOP.lastIndex = start + 1;
    for (let stop = STRING_STOP.exec(this.#text); stop; stop = STRING_STOP.exec(this.#text)) {
      if (stop[0] === '\\') STRING_STOP.lastIndex += 1;
      else if (stop[0] !== '"') break;
      else {
        this.#at = STRING_STOP.lastIndex;
        return this.#unescaped(start);
      }
    }
    throw this.#wrong('expected a string that ends on its line');
  }

  /** The string literal between an offset and the current position. */
  #unescaped(start: number): string {
    try {
      return JSON.parse(this.#text.slice(start, this.#at)) as string;
    } catch {
      throw this.#wrong('invalid escape sequence in a string', start);
    }
  }

  /** Skips white space and returns the next character. */
  #peek(): string | undefined {
    this.#take(SPACE);
    return this.#text[this.#at];
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const token = pattern.exec(this.#text)?.[0];
    this.#at += token?.length ?? 0;
    return token;
  }

  #wrong(message: string, at = this.#at): ParseFailure {
    const column = at === 0 ? 1 : at - this.#text.lastIndexOf('\n', at - 1);
    return new ParseFailure(`not valid JSON: ${message}`, { line: lineAt(this.#text, at), column });
  }
}
