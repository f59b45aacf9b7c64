/** Bundles a file of the simulation with the library from `src`. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';

const here = (file) => fileURLToPath(new URL(file, import.meta.url));
const source = here('../../src/');

/**
 * @param {string} entry a file in this directory.
 * @param {string} outfile
 * @param {{ file: string, text: string, replacement: string }} [mutant] a change of one file of `src`.
 */
export async function bundle(entry, outfile, mutant) {
  await build({
    entryPoints: [here(entry)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: 'inline',
    external: ['@parcel/watcher', 'yaml'],
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    logLevel: 'error',
    plugins: mutant ? [mutation(mutant)] : [],
  });
}

const mutation = ({ file, text, replacement }) => ({
  name: 'mutation',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      if (path !== source + file) return undefined;
      const contents = await readFile(path, 'utf8');
      if (contents.split(text).length !== 2)
        throw new Error(`The mutant's text is not once in ${file}: ${text}`);
      return { contents: contents.replace(text, () => replacement), loader: 'ts' };
    });
  },
});
