/** `--config`: the rules of `watch` in a YAML file that is itself watched. */
import { Command, type Option } from 'commander';
import { ConfigLoader, FileProvider } from 'resilient-watcher/config';

import { checkPaths, isRepeatable } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import { RulesText } from './rules-text.js';
import { Execution } from './execution.js';
import { addRuleFlags, prepareRule, type RuleFlags, type RuleOptions } from './watch-rule.js';

/** The keys of a rule are its flags on the command line, without the leading dashes. */
const FLAGS = new Map(addRuleFlags(new Command()).options.map((flag) => [flag.name(), flag]));

/** The rules in use, by their text, to recognize them in the next revision of the file. */
type RunningRules = Map<string, Execution>;

/**
 * Starts the rules of a file, and exchanges them whenever it changes, until the execution ends.
 * @throws {ConfigError} (rejects) when the file cannot be read or parsed at the start.
 * @throws {ExitError} (rejects) when its rules are wrong at the start.
 */
export async function watchRules(path: string, execution: Execution): Promise<void> {
  const { output, signal, io } = execution;
  const text = new RulesText();
  const loader = execution.closeAtEnd(
    new ConfigLoader({
      name: path,
      sources: [{ provider: new FileProvider(path, { parser: text.parser, merge: true }) }],
      signal,
      clock: io.clock,
    }),
  );
  const running: RunningRules = new Map();
  // Not a validator of the loader: that would hide words of the rules in the message.
  let exchanged = exchange(running, rulesOf(await loader.load(), path, text, execution), execution, true);
  loader.on('change', ({ current }) => {
    try {
      const rules = rulesOf(current, path, text, execution);
      exchanged = exchanged.then(() => exchange(running, rules, execution, false));
    } catch (error) {
      output.log('warn', 'config-rejected', `the rules stay as they are: ${messageOf(error)}`);
    }
  });
  await exchanged;
}

/**
 * Rules that are in both sets continue. The others are closed before the new ones start. Except at the first start, a new
 * rule always acts once: the rules before it may have missed a change, or not have handled it successfully.
 */
async function exchange(
  running: RunningRules,
  rules: readonly RuleOptions[],
  execution: Execution,
  isFirst: boolean,
): Promise<void> {
  const wanted = new Map(rules.map((rule) => [JSON.stringify(rule), rule]));
  const closing: Promise<void>[] = [];
  for (const [text, part] of running) {
    if (wanted.delete(text)) continue;
    running.delete(text);
    closing.push(part.close());
  }
  await Promise.all(closing);
  if (execution.signal.aborted) return;
  const starting = [...wanted].map(([text, rule]) => {
    const part = execution.fork();
    running.set(text, part);
    return prepareRule(rule, part, true)(!isFirst);
  });
  const { size } = new Set(rules.map((rule) => JSON.stringify(rule)));
  const again = size < rules.length ? ` (${rules.length - size} given twice)` : '';
  const count = `${size} ${size === 1 ? 'rule' : 'rules'} in use${again}`;
  // Not awaited: a path on a file system that hangs must not hold up the next revision.
  Promise.all(starting).then(
    () => execution.signal.aborted || execution.output.log('info', 'config', count, { rules: size }),
    (error: unknown) => execution.output.log('error', 'error', messageOf(error)),
  );
}

/** Reports what is wrong at a place in the file. */
type Report = (place: string, what: string) => void;

/** @throws {ExitError} with all that is wrong in the file. */
function rulesOf(values: unknown, file: string, text: RulesText, execution: Execution): RuleOptions[] {
  const problems: string[] = [];
  const report: Report = (place, what) => {
    const line = text.lineOf(place);
    problems.push(`\n  ${file}${line === undefined ? '' : `:${line}`}: ${place}: ${what}`);
  };
  const { rules, ...others } = values as { readonly rules?: unknown };
  for (const key of Object.keys(others)) report(key, 'unknown key; the only key is "rules"');
  if (!Array.isArray(rules)) report('rules', 'it must be a list');
  const read = Array.isArray(rules)
    ? rules.flatMap((rule: unknown, index) => ruleOf(rule, `rules.${index}`, report, execution) ?? [])
    : [];
  if (problems.length === 0) return read;
  throw new ExitError(EXIT.failed, `The rules are wrong:${problems.join('')}`);
}

/** Undefined if something has been reported. */
function ruleOf(
  rule: unknown,
  place: string,
  report: Report,
  { output, io }: Execution,
): RuleOptions | undefined {
  if (typeof rule !== 'object' || rule === null || Array.isArray(rule)) {
    report(place, 'it must be a map');
    return undefined;
  }
  const { paths: givenPaths, command: givenCommand = [], ...given } = rule as Record<string, unknown>;
  const problems: string[] = [];
  const wrong: Report = (key, what) => {
    problems.push(key);
    report(`${place}.${key}`, what);
  };
  const paths = valueOf('paths', givenPaths, list('[/etc/app]'), wrong) ?? [];
  const command = valueOf('command', givenCommand, list('[nginx, -s, reload]'), wrong) ?? [];
  const flags = flagsOf(given, wrong);
  if (problems.length > 0) return undefined;
  try {
    if (paths.length === 0) throw new Error('"paths" is empty');
    checkPaths(paths);
    const options = { paths, command, flags };
    // This shows whether the rule can be created. Nothing is started.
    prepareRule(options, new Execution(output, io));
    return options;
  } catch (error) {
    report(place, messageOf(error));
    return undefined;
  }
}

function flagsOf(given: Readonly<Record<string, unknown>>, wrong: Report): RuleFlags {
  const flags = Object.entries(given).map(([key, value]) => {
    const flag = FLAGS.get(key);
    if (flag) return [flag.attributeName(), valueOf(key, value, (each) => read(flag, each), wrong)] as const;
    wrong(key, `unknown key; the keys are ${['paths', 'command', ...FLAGS.keys()].join(', ')}`);
    return [key, undefined] as const;
  });
  return Object.fromEntries(flags.filter(([, value]) => value !== undefined));
}

/** The value of a flag, as the command line has it. */
function read(flag: Option, value: unknown): unknown {
  if (flag.isBoolean()) return yes(value);
  const parse = (each: string): unknown => flag.parseArg?.(each, undefined);
  if (!isRepeatable(flag) || !Array.isArray(value)) return one(value, parse);
  return elements(value, parse).flat();
}

function valueOf<T>(
  key: string,
  value: unknown,
  reading: (value: unknown) => T,
  wrong: Report,
): T | undefined {
  try {
    return reading(value);
  } catch (error) {
    wrong(error instanceof ElementError ? `${key}.${error.index}` : key, messageOf(error));
    return undefined;
  }
}

/** An element of a list is wrong. */
class ElementError extends Error {
  readonly index: number;

  constructor(index: number, message: string) {
    super(message);
    this.index = index;
  }
}

/** A flag without a value; `false` is as if the key were not there. */
function yes(value: unknown): true | undefined {
  if (value === 'true') return true;
  if (value === 'false') return undefined;
  throw new Error('It must be true or false.');
}

function one<T>(value: unknown, parse: (text: string) => T): T {
  if (typeof value === 'string') return parse(value);
  throw new Error('It must be a string.');
}

function list(example: string): (value: unknown) => string[] {
  return (value) => {
    if (!Array.isArray(value)) throw new Error(`It must be a list, as in ${example}.`);
    return elements(value, String);
  };
}

function elements<T>(values: readonly unknown[], parse: (text: string) => T): T[] {
  return values.map((value, index) => {
    try {
      return one(value, parse);
    } catch (error) {
      throw new ElementError(index, messageOf(error));
    }
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
