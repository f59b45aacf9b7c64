import { existsSync } from 'node:fs';

import { errnoOf } from 'resilient-watcher/internal';

/** What runs the command line of `--exec`, and of `shell: true`. */
export const SHELL = '/bin/sh';

/** Why a command line was not started. */
export function whyNoShell(error: unknown): string {
  if (errnoOf(error) !== 'ENOENT' || existsSync(SHELL)) return whyNotStarted(SHELL, error);
  return `there is no ${SHELL}, which runs it; give the program and its arguments after -- instead`;
}

/** Why a program was not started. Its name may be a whole command line, whose arguments are not quoted. */
export function whyNotStarted(program: string, error: unknown): string {
  const errno = errnoOf(error);
  if (errno === 'ENOENT') {
    return `no such program${adviceFor(program) || '; check its name, PATH and the working directory'}`;
  }
  if (errno === 'EACCES') {
    return 'it is not executable (`chmod +x`), or a directory of its path is closed to this user';
  }
  return error instanceof Error ? error.message : String(error);
}

/** For a program that is not found because it is a whole command line. */
export function adviceFor(program: string): string {
  if (!/\s/.test(program)) return '';
  return '; its arguments have to be words of their own, as in nginx -s reload without quotes';
}
