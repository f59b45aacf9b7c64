/** `--config`: the rules of `watch` in a YAML file that is itself watched. A rule has the flags of the command line. */
import { Command } from 'commander';

import { ConfigLoader, FileProvider, yamlParser } from '../config.js';
import { checkPaths, refuseRepeated } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import { Session } from './session.js';
import { addRuleFlags, prepareRule, type RuleFlags, type RuleOptions } from './watch-rule.js';

/** The rules in use, by their text, to recognize them in the next revision of the file. */
type RunningRules = Map<string, Session>;

/**
 * Starts the rules of a file, and exchanges them whenever it changes, until the session ends.
 * @throws {ConfigError} (rejects) when the file cannot be read or parsed at the start.
 * @throws {ExitError} (rejects) when its rules are wrong at the start.
 */
export async function watchRules(path: string, session: Session): Promise<void> {
  const { output, signal } = session;
  const loader = session.closeAtEnd(
    new ConfigLoader({
      name: path,
      sources: [{ provider: new FileProvider(path, { parser: yamlParser }) }],
      signal,
    }),
  );
  loader.on('rejected', ({ error, problems }) =>
    output.log('warn', 'config-rejected', `the rules stay as they are: ${error.message}`, { problems }),
  );
  loader.on('unreadable', ({ error }) =>
    output.log('warn', 'config-unreadable', `the rules stay as they are: ${error.message}`),
  );
  loader.on('error', (error) => output.log('error', 'error', error.message));
  const running: RunningRules = new Map();
  // Not a validator of the loader: that would hide words of the rules in the message.
  let exchanged = exchange(running, rulesOf(await loader.load(), path, session), session, true);
  loader.on('change', ({ current }) => {
    try {
      const rules = rulesOf(current, path, session);
      exchanged = exchanged.then(() => exchange(running, rules, session, false));
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
  session: Session,
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
  if (session.signal.aborted) return;
  const starting = [...wanted].map(([text, rule]) => {
    const part = session.fork();
    running.set(text, part);
    return prepareRule(rule, part)(!isFirst);
  });
  const count = `${rules.length} ${rules.length === 1 ? 'rule' : 'rules'} in use`;
  // Not awaited: a path on a file system that hangs must not hold up the next revision.
  Promise.all(starting).then(
    () => session.signal.aborted || session.output.log('info', 'config', count, { rules: rules.length }),
    (error: unknown) => session.output.log('error', 'error', messageOf(error)),
  );
}

/** @throws {ExitError} with the place in the file. */
function rulesOf(values: unknown, file: string, session: Session): RuleOptions[] {
  const refuse = (place: string, what: string): never => {
    throw new ExitError(EXIT.failed, `The rules are wrong:\n  ${file}: ${place}: ${what}`);
  };
  const { rules, ...others } = values as { readonly rules?: unknown };
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) return refuse(unknown, 'unknown key; the only key is "rules"');
  if (!Array.isArray(rules)) return refuse('rules', 'it must be a list');
  return rules.map((rule: unknown, index) => {
    try {
      return ruleOf(rule, session);
    } catch (error) {
      return refuse(`rules.${index}`, messageOf(error));
    }
  });
}

function ruleOf(rule: unknown, { output }: Session): RuleOptions {
  if (typeof rule !== 'object' || rule === null || Array.isArray(rule)) throw new Error('it must be a map');
  const { paths, command = [], ...flags } = rule as Record<string, unknown>;
  const parser = refuseRepeated(addRuleFlags(new Command()))
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  const known = parser.options.map((option) => option.name());
  const unknown = Object.keys(flags).find((name) => !known.includes(name));
  // Commander suggests a similar flag.
  parser.parse(unknown === undefined ? Object.entries(flags).flatMap(argumentsOf) : [`--${unknown}`], {
    from: 'user',
  });
  const options = {
    paths: textsOf('paths', paths),
    command: textsOf('command', command),
    flags: parser.opts<RuleFlags>(),
  };
  if (options.paths.length === 0) throw new Error('"paths" is empty');
  checkPaths(options.paths);
  // This shows whether the rule can be created. Nothing is started.
  prepareRule(options, new Session(output));
  return options;
}

/** A value of a rule as an argument of the command line. */
function argumentsOf([name, value]: readonly [string, unknown]): string[] {
  if (value === true) return [`--${name}`];
  if (value === false) return [];
  const values = Array.isArray(value) ? value : [value];
  return values.map((one) => `--${name}=${textOf(name, one)}`);
}

function textsOf(name: string, value: unknown): string[] {
  if (!Array.isArray(value)) throw new Error(`"${name}" must be a list`);
  return value.map((one) => textOf(name, one));
}

function textOf(name: string, value: unknown): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  throw new Error(`"${name}" must be a string or a list of strings`);
}

/** The message, with flags named as in the file. */
function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message
    .replace(/^error: (option )?/, '')
    .replace(/^unknown option/, 'there is no key')
    .replace(/'--([\w-]+)[^']*'/g, '"$1"')
    .replace(/\n\(Did you mean (.*)\)$/, '; did you mean $1')
    .replace(/--(?=\w)/g, '');
}
