/** The packages of this repository, the library first, as their package.json describes them. Build, tests and types use this table. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

const folders = readdirSync(`${root}packages`)
  .filter((name) => existsSync(`${root}packages/${name}/package.json`))
  .map((name) => `packages/${name}/`);

/** `folder` is relative to `root`, and ends with a slash unless it is empty. */
export const packages = ['', ...folders].map((folder) => {
  const manifest = JSON.parse(readFileSync(`${root}${folder}package.json`, 'utf8'));
  const doors = Object.entries(manifest.exports ?? {}).filter(([path]) => !path.endsWith('.json'));
  return {
    folder,
    manifest,
    /** What is imported, and the name of its file in `src`. */
    entryPoints: doors.map(([path, { default: built }]) => ({
      specifier: manifest.name + path.slice(1),
      name: built.replace(/^\.\/dist\/(.+)\.js$/, '$1'),
    })),
  };
});
