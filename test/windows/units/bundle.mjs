/** Bundles unit tests for `node.exe`, with the sources of the packages, and with `vitest.mjs` in the place of vitest. */
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';

import { packages, root } from '../../../packages/packages.mjs';
import { unitsOnWindows } from './files.mjs';

/** Returns the file that runs them. It lies where the packages that tests import are found. */
export async function bundleUnits() {
  const outdir = `${root}node_modules/.cache/windows-units`;
  const files = unitsOnWindows;
  const here = (name) => fileURLToPath(new URL(name, import.meta.url));
  const sources = packages.flatMap(({ folder, entryPoints }) =>
    entryPoints.map(({ specifier, name }) => [specifier, `${root}${folder}src/${name}.ts`]),
  );
  const places = new Map([['vitest', here('vitest.mjs')], ...sources]);
  rmSync(outdir, { recursive: true, force: true });
  await build({
    entryPoints: [here('main.mjs'), ...files.map((file) => root + file)],
    outbase: root,
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    sourcemap: 'inline',
    target: 'node22',
    packages: 'external',
    // package.json says of the library that importing it does nothing: of these files that is not true.
    ignoreAnnotations: true,
    logLevel: 'error',
    define: { FILES: JSON.stringify(files.map((file) => file.replace(/ts$/, 'mjs'))) },
    plugins: [
      {
        name: 'places',
        setup({ onResolve }) {
          onResolve({ filter: /^[^./]/ }, ({ path }) =>
            places.has(path) ? { path: places.get(path) } : undefined,
          );
        },
      },
    ],
  });
  return `${outdir}/test/windows/units/main.mjs`;
}
