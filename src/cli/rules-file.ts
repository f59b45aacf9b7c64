/**
 * `--config`: the rules of `watch` in a YAML file that is itself watched. A rule has the flags of the command line.
 *
 * Rules are exchanged in one step: the old ones stop reporting and acting, and only then the new ones begin. An update of
 * a path that both watch is acted on by one of them at least:
 *
 * | the update                                              | is acted on by                                          |
 * |---------------------------------------------------------|---------------------------------------------------------|
 * | was reported by the old rule, and its action succeeded  | the old rule, and never by the new one                  |
 * | waits, is being acted on, failed, or was rejected       | the new rule, with the keys that the old one has left   |
 * | was not reported yet, or is made during the exchange    | the new rule: it differs from what the old one reported |
 * | is made after the first check of the new rule           | the new rule, as any change                             |
 * | cannot be read by the new rule yet                      | the new rule when it can, or the one that replaces it   |
 *
 * This holds for each path separately, however rules spell and combine them.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';

import { Command, CommanderError } from 'commander';

import { ConfigLoader, FileProvider, yamlParser } from '../config.js';
import { EXIT, ExitError } from './exit-code.js';
import { Session } from './session.js';
import { addRuleFlags } from './watch-flags.js';
import { checkPaths, WatchRule, type RuleFlags, type RuleOptions } from './watch-rule.js';

interface NewRule {
  /** The text of the rule, to recognize it in the next revision. */
  readonly source: string;
  readonly options: RuleOptions;
}

interface RunningRule extends Pick<NewRule, 'source'> {
  readonly rule: WatchRule;
}

/** The rules of a file. */
export class RulesFile {
  readonly #session: Session;
  readonly #loader: ConfigLoader<readonly RuleOptions[]>;
  #running: readonly RunningRule[] = [];
  /** Revisions of the file are applied one after the other. */
  #exchange: Promise<void> = Promise.resolve();

  constructor(path: string, session: Session) {
    this.#session = session;
    this.#loader = session.closeAtEnd(
      new ConfigLoader<readonly RuleOptions[]>({
        name: path,
        sources: [{ provider: new FileProvider(path), parser: yamlParser }],
        validate: (values) => rulesOf(values, session),
        signal: session.signal,
      }),
    );
  }

  /**
   * @throws {ConfigError} (rejects) when the file is not valid at the start.
   * @throws {ExitError} (rejects) for a directory.
   */
  async start(): Promise<void> {
    const { output } = this.#session;
    const { name } = this.#loader;
    if ((await stat(name).catch(() => undefined))?.isDirectory()) {
      throw new ExitError(
        EXIT.usage,
        `--config ${name} is a directory; give the file in it, as in ${join(name, 'rules.yaml')}`,
      );
    }
    this.#loader.on('rejected', ({ problems }) => {
      const reasons = problems
        .map(({ path, message }) => [path?.join('.'), message].filter(Boolean).join(': '))
        .join('; ');
      output.log('warn', 'config-rejected', `the rules stay as they are: ${reasons}`, { problems });
    });
    this.#loader.on('unreadable', ({ error }) =>
      output.log('warn', 'config-unreadable', `the rules stay as they are: ${error.message}`),
    );
    this.#loader.on('change', ({ current }) => this.#use(current));
    this.#loader.on('error', (error) => output.log('error', 'error', error.message));
    await this.#loader.load();
    this.#use(this.#loader.current ?? []);
  }

  #use(rules: readonly RuleOptions[]): void {
    this.#exchange = this.#exchange
      .then(() => (this.#session.signal.aborted ? undefined : this.#replace(rules)))
      .catch((error: unknown) => this.#failed(error, 'the rules stay as they are: '));
  }

  /** Unchanged rules continue. A rule that replaces another one acts on the changes that the other had not handled. */
  async #replace(rules: readonly RuleOptions[]): Promise<void> {
    const before = [...this.#running];
    const kept: typeof before = [];
    const added: NewRule[] = [];
    for (const options of rules) {
      const source = JSON.stringify(options);
      const index = before.findIndex((running) => running.source === source);
      if (index < 0) added.push({ source, options });
      else kept.push(...before.splice(index, 1));
    }
    // What cannot be created leaves the old rules as they are.
    const fresh = await this.#create(added);
    this.#running = [...kept, ...fresh];
    const remainders = (await Promise.all(before.map(({ rule }) => rule.close()))).flat();
    if (this.#session.signal.aborted) return;
    // Not awaited: a path on a file system that hangs must not keep the next revision from being applied.
    Promise.all(fresh.map(({ rule }) => rule.start(remainders))).then(
      () => this.#report(rules.length),
      (error: unknown) => this.#failed(error),
    );
  }

  /** @throws {ExitError} (rejects) when one of them cannot be created, as for a process that has just ended. */
  async #create(rules: readonly NewRule[]): Promise<RunningRule[]> {
    const parts = rules.map((rule) => ({ ...rule, part: this.#session.fork() }));
    try {
      return parts.map(({ source, options, part }) => ({ source, rule: new WatchRule(options, part) }));
    } catch (error) {
      for (const { part } of parts) await part.close();
      throw error;
    }
  }

  #report(rules: number): void {
    if (this.#session.signal.aborted) return;
    this.#session.output.log('info', 'config', `${rules} ${rules === 1 ? 'rule' : 'rules'} in use`, {
      rules,
    });
  }

  #failed(error: unknown, prefix = ''): void {
    if (this.#session.signal.aborted) return;
    const message = error instanceof Error ? error.message : String(error);
    this.#session.output.log('error', 'error', prefix + message);
  }
}

/** @throws an error with the place in the file, as a validator does. */
function rulesOf(values: unknown, session: Session): RuleOptions[] {
  const { rules, ...others } = values as { readonly rules?: unknown };
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw faultAt([unknown], 'an unknown key; the only one is "rules"');
  if (!Array.isArray(rules)) throw faultAt(['rules'], 'it must be a list');
  return rules.map((rule: unknown, index) => {
    try {
      return ruleOf(rule, session);
    } catch (error) {
      throw faultAt(['rules', String(index)], messageOf(error));
    }
  });
}

/** An error as thrown by schema libraries. */
function faultAt(path: readonly string[], message: string): Error {
  return Object.assign(new Error(message), { issues: [{ path, message }] });
}

function ruleOf(rule: unknown, session: Session): RuleOptions {
  if (typeof rule !== 'object' || rule === null || Array.isArray(rule)) throw new Error('it must be a map');
  const { paths, command = [], ...flags } = rule as Record<string, unknown>;
  const parser = addRuleFlags(new Command('rule'))
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .allowExcessArguments();
  parser.parse(Object.entries(flags).flatMap(argumentsOf), { from: 'user' });
  const options = {
    paths: textsOf('paths', paths),
    command: textsOf('command', command),
    flags: parser.opts<RuleFlags>(),
  };
  checkPaths(options.paths);
  // Creating the actions shows whether the flags can be combined. They are not started.
  new WatchRule(options, new Session(session.output));
  return options;
}

/** A value of a rule as an argument of the command line. */
function argumentsOf([name, value]: readonly [string, unknown]): string[] {
  if (name === 'once') throw new Error('"once" is for a single command line, not for a rule');
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
  throw new Error(`"${name}" must be text, or a list of texts`);
}

function messageOf(error: unknown): string {
  if (error instanceof CommanderError || error instanceof ExitError) {
    return error.message.replace(/^error: /, '');
  }
  return error instanceof Error ? error.message : String(error);
}
