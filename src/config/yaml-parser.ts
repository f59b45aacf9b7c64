import type * as Yaml from 'yaml';

import { loadYaml } from '../core/errors/yaml-package.js';
import { MAX_DEPTH } from './config-value.js';
import type { ConfigParser } from './parser.js';
import { parseFailure } from './problems.js';
import { placeAt } from './places.js';
import { readValues, type Refuse } from './yaml-values.js';

/**
 * Parses one YAML 1.2 document with the package `yaml`, which is loaded on first use. Duplicate keys, unknown tags,
 * integers with a leading 0 or beyond 2^53, numbers beyond 1.8e308, more than 1,000 aliases, and more than a million values
 * when these are expanded are refused, and so are merge keys (`<<: *base`) without the option `merge`. The package's
 * messages quote the text, so only its error codes are reported.
 */
export const yamlParser: ConfigParser = {
  name: 'YAML',
  async parse(text, { merge = false } = {}) {
    const yaml = await loadYaml();
    const lines = new yaml.LineCounter();
    const refuse: Refuse = (message, offset, isValid = false) => {
      const { line, col } = lines.linePos(offset);
      throw parseFailure(`${isValid ? '' : 'not valid YAML: '}${message}`, { line, column: col });
    };
    // The package compares each key with all others of the map; `readValues` uses a set instead.
    const composer = new yaml.Composer({ stringKeys: true, uniqueKeys: false });
    const [document, next] = composer.compose(tokensOf(yaml, text, lines, refuse), true, text.length);
    // A warning shows that the text does not mean what its author intended, as with an unknown tag.
    const [fault] = [...(document?.errors ?? []), ...(document?.warnings ?? [])];
    if (fault) refuse(fault.code.toLowerCase().replaceAll('_', ' '), fault.pos[0]);
    const values = document && readValues(yaml, document, { merge, refuse }).value;
    if (next) refuse('multiple docs', next.range[0]);
    // Nothing but comments is null in YAML; to its author it is no keys.
    return values ?? {};
  },
  async placeOf(text, path) {
    const yaml = await loadYaml();
    const document = yaml.parseDocument(text, { stringKeys: true, uniqueKeys: false });
    const refuse: Refuse = (message) => {
      throw parseFailure(message);
    };
    const offset = readValues(yaml, document, { merge: true, refuse }).offsetOf(path);
    return offset === undefined ? undefined : placeAt(text, offset);
  },
};

/**
 * The tokens of the text. The package composes them recursively, and nesting that is too deep for the stack can end the
 * process, so it is refused here.
 */
function* tokensOf(
  { Lexer, Parser }: typeof Yaml,
  text: string,
  lines: Yaml.LineCounter,
  refuse: Refuse,
): Generator<Yaml.CST.Token> {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    // The document and a scalar are on the stack as well.
    if (parser.stack.length > MAX_DEPTH + 2) {
      refuse(`nested more than ${MAX_DEPTH} levels deep`, parser.offset);
    }
  }
  yield* parser.end();
}
