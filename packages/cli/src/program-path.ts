/** Looks for a program as `execvp(3)` does, to warn of a mistake before anything is run. */
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { join } from 'node:path';

import { adviceFor } from './action/not-started.js';
import type { Execution } from './execution.js';

/** Not an error: the program may be on a volume that is filled later. */
export async function warnOfMissingProgram(
  [program]: readonly string[],
  { output, io }: Execution,
): Promise<void> {
  const path = io.env['PATH'];
  // Without PATH, the directories depend on the system.
  if (program === undefined || path === undefined) return;
  const isPath = program.includes('/');
  for (const directory of isPath ? [''] : path.split(':')) {
    if (await isExecutable(isPath ? program : join(directory, program))) return;
  }
  const place = isPath ? '' : ' in PATH';
  const advice = adviceFor(program) || '; actions fail until there is one';
  const message = `${program}: no such program${place}${advice}`;
  output.log('warn', 'missing-program', message, { program });
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
