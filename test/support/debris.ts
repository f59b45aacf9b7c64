import { readdirSync } from 'node:fs';

/** What is left over in a directory: all entries but these. */
export function debris(directory: string, ...expected: string[]): string[] {
  return readdirSync(directory).filter((name) => !expected.includes(name));
}
