import type * as Yaml from 'yaml';

import { loadYaml } from '../core/errors/yaml-package.js';
import { MAX_DEPTH } from './config-value.js';
import type { ConfigParser } from './parser.js';
import { parseFailure } from './problems.js';
import { placeAt } from './places.js';
import { readValues, type Refuse } from './yaml-values.js';

/** What is wrong and what to do, by the error codes of the package, whose messages quote the text. */
const FAULTS: Readonly<Record<Yaml.ErrorCode, string>> = {
  ALIAS_PROPS: 'an alias takes no anchor and no tag of its own',
  BAD_ALIAS:
    'an alias or anchor has no name, or its name has ":" or "," in it; put a value that begins with "*" or "&" in quotes',
  BAD_COLLECTION_TYPE: 'the tag belongs to another kind of value',
  BAD_DIRECTIVE: 'a line that begins with "%" is a directive, and this one is not %YAML or %TAG',
  BAD_DQ_ESCAPE: 'this "\\" escapes nothing; write "\\\\" in double quotes, or use single quotes',
  BAD_INDENT: 'the indentation does not match the lines above it, or a bracket or brace is not closed',
  BAD_PROP_ORDER: 'an anchor or a tag stands after the value, or before the "-" or "?" of it',
  BAD_SCALAR_START: 'a value cannot begin with "@", "`" or "%"; put it in quotes',
  BLOCK_AS_IMPLICIT_KEY:
    'a second ": " on one line; put a value that contains ": " in quotes, or begin a nested map on a line of its own, indented',
  BLOCK_IN_FLOW: 'within "[ ]" or "{ }" there are no "-", "|" and ">"',
  DUPLICATE_KEY: 'duplicate key',
  IMPOSSIBLE: 'the text cannot be read here',
  KEY_OVER_1024_CHARS: 'a key has more than 1,024 characters',
  MISSING_CHAR:
    'something is missing before this place: ": " after a key, "," between elements, or a quote at the end of a value',
  MULTILINE_IMPLICIT_KEY: 'a key without ": " on its line; elements of a list and keys of a map do not mix',
  MULTIPLE_ANCHORS: 'a value has two anchors',
  MULTIPLE_DOCS: 'a second document begins here ("---"); a source has one',
  MULTIPLE_TAGS: 'a value has two tags',
  NON_STRING_KEY: 'a key is a list, a map or an alias; put "{{ … }}" of a template in quotes',
  RESOURCE_EXHAUSTION: 'too many aliases',
  TAB_AS_INDENT: 'a tab indents the line; use spaces',
  TAG_RESOLVE_FAILED:
    'the tag is unknown, or does not fit the value; put a value that begins with "!" in quotes',
  UNEXPECTED_TOKEN:
    'something stands after the end of a value, or a list begins on the line of its key; put a value with special characters in quotes',
};

/**
 * Parses one YAML 1.2 document with the package `yaml`, which is loaded on first use. Duplicate keys, unknown tags,
 * integers with a leading 0 or beyond 2^53, numbers beyond 1.8e308, more than 1,000 aliases, and more than a million values
 * when these are expanded are refused, and so are merge keys (`<<: *base`) without the option `merge`.
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
    if (fault) refuse(FAULTS[fault.code], fault.pos[0]);
    const values = document && readValues(yaml, document, { merge, refuse }).value;
    if (next) refuse(FAULTS.MULTIPLE_DOCS, next.range[0]);
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
