import { ConfigError, errnoOf, ResilientError, type ConfigProblem } from '../core/errors.js';

/**
 * Why a source cannot be used, named after it. The message of an error that is not the library's own is left out:
 * it may quote a secret.
 */
export function sourceProblems(error: unknown, source: string): readonly ConfigProblem[] {
  if (error instanceof ConfigError) {
    const { code, message, problems } = error;
    if (problems.length === 0) return [{ code, source, message }];
    return problems.map((problem) => ({ ...problem, source: problem.source || source }));
  }
  const name = error instanceof Error ? error.name : typeof error;
  const kind = errnoOf(error) ?? name;
  const message = error instanceof ResilientError ? error.message : `it cannot be read (${kind})`;
  return [{ code: 'ERR_CONFIG_UNREADABLE', source, message }];
}
