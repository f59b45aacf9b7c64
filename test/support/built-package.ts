import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Refuses to test a package that is missing, or older than its sources.
 * @param root the directory of the repository.
 */
export function checkBuilt(root: string): void {
  const timeOf = (path: string): number =>
    statSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const built = timeOf('dist/index.js');
  if (built === 0) throw new Error('These tests run the built package: `npm run build -- --no-dts` first');
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  const newer = ['tsup.config.ts', ...sources.map((file) => join('src', file))]
    .filter((path) => path.endsWith('.ts'))
    .find((path) => timeOf(path) > built);
  if (newer !== undefined)
    throw new Error(`${newer} is newer than dist: \`npm run build -- --no-dts\` first`);
}
