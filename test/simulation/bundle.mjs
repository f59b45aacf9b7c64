/** Bundles a file of the simulation with the library from `src`. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { build } from 'esbuild';

const slashed = (path) => path.replaceAll('\\', '/');
const here = (file) => fileURLToPath(new URL(file, import.meta.url));
const source = slashed(here('../../src/'));

/**
 * @param {string} entry a file in this directory.
 * @param {string} outfile
 * @param {(file: string, text: string) => string} [change] what becomes of the text of a file of `src`.
 * @param {string[]} [inject] files that export what the changed text uses.
 * @param {string} [platform] that of the machine, as in `process.platform`.
 */
export async function bundle(entry, outfile, change = (_, text) => text, inject = [], platform = 'linux') {
  await build({
    entryPoints: [here(entry)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: 'inline',
    external: ['yaml'],
    define: { 'process.platform': JSON.stringify(platform) },
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    logLevel: 'error',
    inject,
    plugins: [parcelEdges, sources(change)],
  });
}

/** The kinds that are no Linux. A bundle has one platform. */
const PLATFORMS = { darwin: 'darwin', windows: 'win32' };

/** That of the kinds in a command line. */
export function platformOf(args) {
  const { kind = '' } = parseArgs({ args, options: { kind: { type: 'string' } }, strict: false }).values;
  const platforms = new Set(kind.split(',').map((each) => PLATFORMS[each] ?? 'linux'));
  if (platforms.size > 1) throw new Error(`The kinds ${kind} are on several platforms: run them one by one`);
  return [...platforms].join();
}

/** What the backend `parcel` imports from outside the library is part of the machine. */
const parcelEdges = {
  name: 'parcel-edges',
  setup({ onResolve }) {
    const importers = ['parcel.ts', 'parcel-watch.ts'];
    onResolve({ filter: /^@parcel\/watcher$|^node:worker_threads$|\/builtins\.js$/ }, ({ importer }) =>
      importers.some((file) => slashed(importer) === `${source}watch/backends/${file}`)
        ? { path: here('parcel-edges.ts') }
        : undefined,
    );
  },
};

/** What the process knows of the native module begins again with each schedule. */
const KNOWN = 'let native = newNative();\n';
const FORGET = 'globalThis.forgetParcel = () => void Object.assign(native, newNative());\n';

const sources = (change) => ({
  name: 'sources',
  setup({ onLoad }) {
    onLoad({ filter: /src.*\.ts$/ }, async (file) => {
      const path = slashed(file.path);
      let contents = await readFile(path, 'utf8');
      if (path.startsWith(source)) contents = change(path.slice(source.length), contents);
      if (path.endsWith('/parcel-watch.ts')) {
        if (!contents.includes(KNOWN)) throw new Error(`${path} has no line ${KNOWN}`);
        contents = contents.replace(KNOWN, KNOWN + FORGET);
      }
      return { contents, loader: 'ts' };
    });
  },
});

/** What makes this change of one place of a file. */
export const changeOf =
  ({ file, text, replacement }) =>
  (path, contents) => {
    if (path !== file) return contents;
    if (contents.split(text).length !== 2)
      throw new Error(`The mutant's text is not once in ${file}: ${text}`);
    return contents.replace(text, () => replacement);
  };
