import { ParseFailure } from './parser.js';

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const WORD = /true|false|null/y;

/** Deeper than any configuration, and far from the end of the stack. */
const DEEPEST = 500;

/**
 * Reads a JSON text and says where it is wrong. `JSON.parse` cannot serve: it takes the last of two equal keys
 * without a word, and its messages quote the text.
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
      if (Object.hasOwn(object, key)) throw this.#wrong(`the key "${key}" is there twice`, start);
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

  /** From the opening bracket to the closing one. */
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
    if (this.#depth > DEEPEST) throw this.#wrong(`nested more than ${DEEPEST} levels deep`);
    const value = read();
    this.#depth -= 1;
    return value;
  }

  #string(): string {
    const token = this.#take(STRING);
    if (token === undefined) throw this.#wrong('expected a string that ends on its line');
    return JSON.parse(token) as string;
  }

  /** The next character that is no space. */
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
    const lines = this.#text.slice(0, at).split('\n');
    return new ParseFailure(`not valid JSON: ${message}`, {
      line: lines.length,
      column: (lines.at(-1)?.length ?? 0) + 1,
    });
  }
}
