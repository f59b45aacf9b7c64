import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { packages } from '../../packages/packages.mjs';

/**
 * Refuses to test packages that are not built, or older than their sources.
 * @param root the directory of the repository.
 */
export function checkBuilt(root: string): void {
  const timeOf = (path: string): number =>
    statSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  for (const { folder } of packages) {
    const built = timeOf(`${folder}dist`);
    if (built === 0) throw new Error('These tests run the built packages: `npm run build -- --no-dts` first');
    const sources = readdirSync(join(root, folder, 'src'), { recursive: true, encoding: 'utf8' });
    const newer = ['tsup.config.ts', ...sources.map((file) => `${folder}src/${file}`)]
      .filter((path) => path.endsWith('.ts'))
      .find((path) => timeOf(path) > built);
    if (newer !== undefined)
      throw new Error(`${newer} is newer than ${folder}dist: \`npm run build -- --no-dts\` first`);
  }
}
