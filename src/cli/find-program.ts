import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Whether there is a program that a command of this name would start, as `execvp(3)` looks for it. */
export async function isProgram(name: string, path = process.env['PATH']): Promise<boolean> {
  // Without PATH, the directories depend on the system.
  if (path === undefined && !name.includes('/')) return true;
  const files = name.includes('/')
    ? [name]
    : (path ?? '').split(':').map((directory) => join(directory, name));
  for (const file of files) if (await isExecutable(file)) return true;
  return false;
}

async function isExecutable(file: string): Promise<boolean> {
  try {
    await access(file, constants.X_OK);
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
