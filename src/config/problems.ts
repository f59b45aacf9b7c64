/** The problems of a configuration, as errors and as text. */
import { errnoOf } from '../core/errors/errno.js';
import { ConfigError, type ConfigErrorCode, type ConfigProblem } from './config-error.js';
import { PackageError } from '../core/errors/package-error.js';
import { redactError, ResilientError } from '../core/errors/resilient-error.js';
import type { Place } from './places.js';

/** Where a problem is. */
interface Where extends Place {
  readonly path?: readonly string[] | undefined;
}

/** A `ConfigError` with one problem. */
export function configError(
  code: ConfigErrorCode,
  source: string,
  message: string,
  { cause, ...where }: Where & ErrorOptions = {},
): ConfigError {
  const problem = problemAt(code, source, message, where);
  return new ConfigError(code, problem.message, { problems: [problem], cause });
}

/** A problem whose message is one line with its place. */
export function problemAt(
  code: ConfigProblem['code'],
  source: string,
  message: string,
  { path, line, column, name, file = source }: Where = {},
): ConfigProblem {
  const setBy = name === undefined ? '' : ` (set by ${name})`;
  const key = path?.length ? `${path.join('.')}${setBy}: ` : '';
  return {
    code,
    source,
    message: `${placeText(file, { line, column })}${key}${message}`,
    // Omitted rather than undefined, because problems are part of the status, which is JSON-safe.
    ...(path && { path }),
    ...(line !== undefined && { line }),
    ...(column !== undefined && { column }),
  };
}

/** The source, line and column before a message. */
export function placeText(source: string, { line, column }: Place): string {
  const place = [source, line, column].filter((part) => part !== undefined && part !== '').join(':');
  return place && `${place}: `;
}

/** What a parser of this library refuses. The caller of the parser adds the source. */
export function parseFailure(
  message: string,
  { line, column }: Pick<ConfigProblem, 'line' | 'column'> = {},
): ConfigError {
  return configError('ERR_CONFIG_PARSE', '', message, { line, column });
}

/** The source of problems that do not come from a single source. */
export const NO_SOURCE = 'validate';

/** A longer list would not be read. */
export const MAX_PROBLEMS = 100;

/** At most `MAX_PROBLEMS`: the last one counts those that are left out. @param count of all that there are */
export function listed(
  problems: readonly ConfigProblem[],
  count = problems.length,
): readonly ConfigProblem[] {
  if (count <= MAX_PROBLEMS) return problems;
  const shown = problems.slice(0, MAX_PROBLEMS - 1);
  const code = shown[0]?.code ?? 'ERR_CONFIG_SCHEMA';
  return [...shown, { code, source: NO_SOURCE, message: `${count - shown.length} more problems` }];
}

/** The error for a configuration that cannot be used, with all of its problems. */
export function invalid(problems: readonly ConfigProblem[], cause?: Error): ConfigError {
  const separator = problems.length === 1 ? ' ' : '\n  ';
  const list = problems.map(({ message }) => `${separator}${message}`).join('');
  return new ConfigError('ERR_CONFIG_INVALID', `The configuration cannot be used:${list}`, {
    problems,
    cause,
  });
}

/** The reasons why a source cannot be used. */
export function sourceProblems(error: unknown, source: string): readonly ConfigProblem[] {
  if (error instanceof ConfigError) {
    const { code, message, problems } = error;
    if (problems.length === 0) return [problemAt(code, source, message)];
    return listed(problems).map((problem) => (problem.source === '' ? inSource(problem, source) : problem));
  }
  if (error instanceof PackageError) return [problemAt(error.code, source, error.message)];
  const kind = errnoOf(error) ?? (error instanceof Error ? error.name : typeof error);
  const { message: text } = redactError(error);
  const message =
    error instanceof ResilientError ? error.message : `cannot read it${text && `: ${text}`} (${kind})`;
  return [problemAt('ERR_CONFIG_UNREADABLE', source, message)];
}

/** A problem of a text whose source was not known yet. */
function inSource(problem: ConfigProblem, source: string): ConfigProblem {
  const separator = problem.line === undefined ? ': ' : ':';
  return { ...problem, source, message: `${source}${separator}${problem.message}` };
}
