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
    external: ['yaml'],
    define: { 'process.platform': '"linux"' },
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    logLevel: 'error',
    plugins: [parcelEdges, sources(mutant)],
  });
}

/** What the backend `parcel` imports from outside the library is part of the machine. */
const parcelEdges = {
  name: 'parcel-edges',
  setup({ onResolve }) {
    const importers = ['parcel.ts', 'parcel-watch.ts', 'inotify-probe.ts'];
    onResolve({ filter: /^(@parcel\/watcher|node:fs|node:worker_threads)$/ }, ({ importer }) =>
      importers.some((file) => importer === `${source}watch/backends/${file}`)
        ? { path: here('parcel-edges.ts') }
        : undefined,
    );
  },
};

/** What the process knows of the native module begins again with each schedule. */
const KNOWN = /^const native = (\{\n.*?^\});$/ms;

const sources = (mutant) => ({
  name: 'sources',
  setup({ onLoad }) {
    onLoad({ filter: /src.*\.ts$/ }, async ({ path }) => {
      const keepsState = path.endsWith('/parcel-watch.ts');
      if (!keepsState && path !== source + mutant?.file) return undefined;
      let contents = await readFile(path, 'utf8');
      if (path === source + mutant?.file) contents = mutated(contents, mutant);
      if (keepsState)
        contents = contents.replace(
          KNOWN,
          (_, state) => `let native = ${state};\nglobalThis.forgetParcel = () => void (native = ${state});`,
        );
      return { contents, loader: 'ts' };
    });
  },
});

function mutated(contents, { file, text, replacement }) {
  if (contents.split(text).length !== 2) throw new Error(`The mutant's text is not once in ${file}: ${text}`);
  return contents.replace(text, () => replacement);
}
