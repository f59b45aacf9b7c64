import type * as Yaml from 'yaml';

import { loadYaml } from '../core/yaml-package.js';
import { MAX_DEPTH } from './config-value.js';
import type { ConfigParser } from './parser.js';
import { isUnsafeNumber, parseFailure, UNSAFE_NUMBER } from './problems.js';
import { placeAt } from './places.js';
import { isMergeKey, MAX_VALUES, Merges, offsetOf } from './yaml-merge.js';

/** To resolve each alias, the package walks all aliases and anchors; the limit keeps that below a second. */
const MAX_ALIASES = 1_000;

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
    const refuse = ({ message, offset, isValid = false }: Fault): never => {
      const { line, col } = lines.linePos(offset);
      throw parseFailure(`${isValid ? '' : 'not valid YAML: '}${message}`, { line, column: col });
    };
    // The package compares each key with all others of the map; `firstFault` uses a set instead.
    const composer = new yaml.Composer({ stringKeys: true, uniqueKeys: false, merge });
    const [document, next] = composer.compose(tokensOf(yaml, text, lines, refuse), true, text.length);
    const fault = document && firstFault(yaml, document, merge);
    if (fault) refuse(fault);
    if (next) refuse({ message: 'multiple docs', offset: next.range[0] });
    let values: unknown;
    try {
      // Shared values are not copied here; how often they would be is counted below.
      values = document?.toJS({ maxAliasCount: -1 });
    } catch {
      throw parseFailure('not valid YAML: an alias without an anchor');
    }
    if (countValues(values) > MAX_VALUES) {
      throw parseFailure(`not valid YAML: more than ${MAX_VALUES} values after its aliases are expanded`);
    }
    return values;
  },
  async placeOf(text, path) {
    const yaml = await loadYaml();
    const document = yaml.parseDocument(text, { stringKeys: true, uniqueKeys: false, merge: true });
    const offset = offsetOf(yaml, document, path);
    return offset === undefined ? undefined : placeAt(text, offset);
  },
};

/** What is wrong, and where. */
interface Fault {
  readonly message: string;
  readonly offset: number;
  /** Whether it is YAML, but is refused nevertheless. */
  readonly isValid?: boolean;
}

/** YAML 1.2 has no merge keys, and most programs merge them nevertheless. */
const MERGE_KEY =
  'the merge key "<<" is not in YAML 1.2: set the option "merge" of the provider (or of yamlParser.parse) to merge it, ' +
  'or write it in quotes';

/** As in file modes. */
const OCTAL_NUMBER =
  'an integer with a leading 0 is octal in YAML 1.1 and decimal in YAML 1.2; write 0o… for octal, or put it in quotes';

/**
 * The tokens of the text. The package composes them recursively, and nesting that is too deep for the stack can end the
 * process, so it is refused here.
 */
function* tokensOf(
  { Lexer, Parser }: typeof Yaml,
  text: string,
  lines: Yaml.LineCounter,
  refuse: (fault: Fault) => never,
): Generator<Yaml.CST.Token> {
  lines.addNewLine(0);
  const parser = new Parser(lines.addNewLine);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    // The document and a scalar are on the stack as well.
    if (parser.stack.length > MAX_DEPTH + 2) {
      refuse({ message: `nested more than ${MAX_DEPTH} levels deep`, offset: parser.offset });
    }
  }
  yield* parser.end();
}

/** The first fault of a parsed document. */
function firstFault(yaml: typeof Yaml, document: Yaml.Document.Parsed, merge: boolean): Fault | undefined {
  const { isScalar, visit } = yaml;
  // A warning shows that the text does not mean what its author intended, as with an unknown tag.
  const [first] = [...document.errors, ...document.warnings];
  if (first) return { message: first.code.toLowerCase().replaceAll('_', ' '), offset: first.pos[0] };
  const merges = new Merges(yaml);
  let fault: Fault | undefined;
  let aliases = 0;
  visit(document, {
    Map: (_, map) => {
      merges.anchor(map);
      const keys = new Set<unknown>();
      for (const { key } of map.items) {
        const name = isScalar(key) ? key.value : key;
        const offset = isScalar(key) ? (key.range?.[0] ?? 0) : 0;
        if (isMergeKey(key)) {
          if (merge) continue;
          fault = { message: MERGE_KEY, offset, isValid: true };
        } else if (keys.has(name)) fault = { message: 'duplicate key', offset };
        if (fault) return visit.BREAK;
        keys.add(name);
      }
      return undefined;
    },
    Seq: (_, sequence) => merges.anchor(sequence),
    Pair: (_, pair, path) => {
      if (!merge || !isMergeKey(pair.key)) return undefined;
      const message = merges.add(path.at(-1), pair.value);
      if (message === undefined) return undefined;
      fault = { message, offset: (pair.key as Yaml.Scalar).range?.[0] ?? 0 };
      return visit.BREAK;
    },
    Scalar: (_, { value, source = '', range }) => {
      const isOctal = typeof value === 'number' && /^[-+]?0\d+$/.test(source);
      if (!isOctal && !isUnsafeNumber(value, source)) return undefined;
      fault = { message: isOctal ? OCTAL_NUMBER : UNSAFE_NUMBER, offset: range?.[0] ?? 0, isValid: true };
      return visit.BREAK;
    },
    Alias: (_, { range }) => {
      aliases += 1;
      if (aliases <= MAX_ALIASES) return undefined;
      fault = { message: `more than ${MAX_ALIASES} aliases`, offset: range?.[0] ?? 0 };
      return visit.BREAK;
    },
  });
  return fault;
}

/** How many values there are when each alias is a copy; those that aliases share are counted in linear time. */
function countValues(value: unknown, known = new Map<unknown, number>()): number {
  if (typeof value !== 'object' || value === null) return 1;
  const count = known.get(value);
  if (count !== undefined) return count;
  // A value within itself is refused for its depth.
  known.set(value, 0);
  let sum = 1;
  for (const member of Object.values(value)) sum += countValues(member, known);
  known.set(value, sum);
  return sum;
}
