/** `--config`: the rules of `watch` in a YAML file that is itself watched. */
import { ConfigLoader, FileProvider, yamlParser } from '../config.js';
import { checkPaths, delay, duration, httpMethod, signalName, text } from './arguments.js';
import { EXIT, ExitError } from './exit-code.js';
import { Session } from './session.js';
import { prepareRule, type RuleFlags, type RuleOptions } from './watch-rule.js';

/** Reads the value of a key. Throws an error that says what it must be. */
type Read<T> = (value: unknown) => T;

/** The keys of a rule: its flags on the command line, without the leading dashes. */
const KEYS: {
  readonly [K in Exclude<keyof RuleFlags, 'once'>]-?: readonly [key: string, Read<RuleFlags[K]>];
} = {
  check: ['check', one(text)],
  exec: ['exec', several(text)],
  exitOnError: ['exit-on-error', yes],
  initial: ['initial', yes],
  pidFile: ['pid-file', one(text)],
  poll: ['poll', one(duration)],
  process: ['process', one(text)],
  recursive: ['recursive', yes],
  signal: ['signal', several(signalName)],
  splay: ['splay', one(delay)],
  stopSignal: ['stop-signal', one(signalName)],
  stopTimeout: ['stop-timeout', one(delay)],
  timeout: ['timeout', one(duration)],
  webhook: ['webhook', several(text)],
  webhookMethod: ['webhook-method', one(httpMethod)],
};

/** The rules in use, by their text, to recognize them in the next revision of the file. */
type RunningRules = Map<string, Session>;

/**
 * Starts the rules of a file, and exchanges them whenever it changes, until the session ends.
 * @throws {ConfigError} (rejects) when the file cannot be read or parsed at the start.
 * @throws {ExitError} (rejects) when its rules are wrong at the start.
 */
export async function watchRules(path: string, session: Session): Promise<void> {
  const { output, signal, io } = session;
  const loader = session.closeAtEnd(
    new ConfigLoader({
      name: path,
      sources: [{ provider: new FileProvider(path, { parser: yamlParser, merge: true }) }],
      signal,
      clock: io.clock,
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

function ruleOf(rule: unknown, { output, io }: Session): RuleOptions {
  if (typeof rule !== 'object' || rule === null || Array.isArray(rule)) throw new Error('it must be a map');
  const { paths: givenPaths, command: givenCommand = [], ...given } = rule as Record<string, unknown>;
  const paths = valueOf('paths', givenPaths, list);
  const command = valueOf('command', givenCommand, list);
  const flags = flagsOf(given);
  if (paths.length === 0) throw new Error('"paths" is empty');
  checkPaths(paths);
  const options = { paths, command, flags };
  // This shows whether the rule can be created. Nothing is started.
  prepareRule(options, new Session(output, io));
  return options;
}

function flagsOf(given: Readonly<Record<string, unknown>>): RuleFlags {
  const known = Object.entries<readonly [string, Read<unknown>]>(KEYS).map(([flag, [key, read]]) => ({
    flag,
    key,
    read,
  }));
  const flags = Object.entries(given).map(([key, value]) => {
    const found = known.find((each) => each.key === key);
    if (found) return [found.flag, valueOf(key, value, found.read)] as const;
    const keys = ['paths', 'command', ...known.map((each) => each.key)];
    throw new Error(`there is no key "${key}"; the keys are ${keys.join(', ')}`);
  });
  return Object.fromEntries(flags.filter(([, value]) => value !== undefined));
}

function valueOf<T>(key: string, value: unknown, read: Read<T>): T {
  try {
    return read(value);
  } catch (error) {
    throw new Error(`"${key}": ${messageOf(error)}`, { cause: error });
  }
}

/** A flag without a value; `false` is as if the key were not there. */
function yes(value: unknown): true | undefined {
  if (typeof value === 'boolean') return value || undefined;
  throw new Error('It must be true or false.');
}

function one<T>(read: (text: string) => T): Read<T> {
  return (value) => {
    if (typeof value === 'string' || typeof value === 'number') return read(String(value));
    throw new Error('It must be a string.');
  };
}

function several<T>(read: (text: string) => T): Read<T[]> {
  return (value) => (Array.isArray(value) ? value : [value]).map(one(read));
}

function list(value: unknown): string[] {
  if (!Array.isArray(value)) throw new Error('It must be a list.');
  return value.map(one(String));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
