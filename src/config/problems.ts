/** The problems of a configuration, as errors and as text. */
import { errnoOf } from '../core/errno.js';
import { ConfigError, type ConfigErrorCode, type ConfigProblem } from './config-error.js';
import { PackageError } from '../core/package-error.js';
import { redactError, ResilientError } from '../core/resilient-error.js';

/** A `ConfigError` with one problem. */
export function configError(
  code: ConfigErrorCode,
  source: string,
  message: string,
  { cause, ...where }: Pick<ConfigProblem, 'path' | 'line' | 'column'> & ErrorOptions = {},
): ConfigError {
  // Omitted rather than undefined, because problems are part of the status, which is JSON-safe.
  const known = Object.fromEntries(Object.entries(where).filter(([, value]) => value !== undefined));
  const problem: ConfigProblem = { code, source, message, ...known };
  return new ConfigError(code, problemText(problem), { problems: [problem], cause });
}

/** What a parser of this library refuses. The caller of the parser adds the source. */
export function parseFailure(
  message: string,
  { line, column }: Pick<ConfigProblem, 'line' | 'column'> = {},
): ConfigError {
  return configError('ERR_CONFIG_PARSE', '', message, { line, column });
}

/** JavaScript would change such a number in silence. */
export const UNSAFE_NUMBER =
  'an integer beyond ±(2^53 - 1) loses digits, and a number beyond ±1.8e308 is infinite; write it as a string, in quotes';

/** Whether a number that was written like this is not the number that JavaScript has read. */
export function isUnsafeNumber(value: unknown, text: string): boolean {
  // `.inf` of YAML has no digits.
  if (typeof value !== 'number' || !/\d/.test(text)) return false;
  const isInteger = /^[-+]?(?:\d+|0x[\da-f]+|0o[0-7]+)$/i.test(text);
  return Math.abs(value) > (isInteger ? Number.MAX_SAFE_INTEGER : Number.MAX_VALUE);
}

/** A problem as one line of text. */
function problemText({ source, path, line, column, message }: ConfigProblem): string {
  const place = [source, line, column].filter((part) => part !== undefined && part !== '').join(':');
  return `${place && `${place}: `}${path?.length ? `${path.join('.')}: ` : ''}${message}`;
}

/** The error for a configuration that cannot be used, with all of its problems. */
export function invalid(problems: readonly ConfigProblem[], cause?: Error): ConfigError {
  const list = problems.map((problem) => `\n  ${problemText(problem)}`).join('');
  return new ConfigError('ERR_CONFIG_INVALID', `The configuration cannot be used:${list}`, {
    problems,
    cause,
  });
}

/** The reasons why a source cannot be used. */
export function sourceProblems(error: unknown, source: string): readonly ConfigProblem[] {
  if (error instanceof ConfigError) {
    const { code, message, problems } = error;
    if (problems.length === 0) return [{ code, source, message }];
    return problems.map((problem) => ({ ...problem, source: problem.source || source }));
  }
  if (error instanceof PackageError) return [{ code: error.code, source, message: error.message }];
  const kind = errnoOf(error) ?? (error instanceof Error ? error.name : typeof error);
  const said = redactError(error).message;
  const message =
    error instanceof ResilientError ? error.message : `cannot read it${said && `: ${said}`} (${kind})`;
  return [{ code: 'ERR_CONFIG_UNREADABLE', source, message }];
}
