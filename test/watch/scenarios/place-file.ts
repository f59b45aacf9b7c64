import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** Writes a file in one step, made outside of what is watched. */
export function placeFile(file: string, text: string, workshop: string): void {
  mkdirSync(dirname(file), { recursive: true });
  const draft = join(workshop, `draft-of-${basename(file)}`);
  writeFileSync(draft, text);
  renameSync(draft, file);
}
