import { existsSync, readFileSync, rmSync } from 'node:fs';

import { defineConfig, type Options } from 'tsup';
import ts from 'typescript';

import { packages, root, type Package } from './packages/packages.mjs';

/** Comments are in the declarations. esbuild would keep those of class members in the code, a tenth of it. */
const uncommented: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'uncommented',
  setup(build) {
    const compilerOptions = {
      removeComments: true,
      verbatimModuleSyntax: true,
      target: ts.ScriptTarget.ES2022,
    };
    build.onLoad({ filter: /\/src\/.+\.ts$/ }, ({ path }) => ({
      contents: ts.transpileModule(readFileSync(path, 'utf8'), { compilerOptions }).outputText,
    }));
  },
};

const common: Options = {
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  removeNodeProtocol: false,
  external: ['@parcel/watcher'],
  esbuildPlugins: [uncommented],
};

const [{ entryPoints: doors }, ...others] = packages as [Package, ...Package[]];

/** Every entry point imports `index.ts`, even if it uses none of it, so that what they share is one file to open. */
const library: Options = {
  ...common,
  entry: doors.map(({ name }) => `src/${name}.ts`),
  esbuildOptions: (options) =>
    Object.assign(options, { chunkNames: 'lib/[name]-[hash]', ignoreAnnotations: true }),
};

/** Another package: its entry points, and the program `main` that `bin.js` starts. What it depends on stays outside. */
function built({ folder, manifest, entryPoints }: Package, dts: boolean): Options {
  const exported = entryPoints.map(({ name }) => name);
  const { dependencies, peerDependencies } = manifest;
  return {
    ...common,
    entry: [...exported, ...(existsSync(`${root}${folder}src/main.ts`) ? ['main'] : [])].map(
      (name) => `${folder}src/${name}.ts`,
    ),
    outDir: `${folder}dist`,
    external: Object.keys({ ...dependencies, ...peerDependencies }).map(
      (name) => new RegExp(`^${name}(/|$)`),
    ),
    dts: dts && exported.length > 0 && { entry: exported.map((name) => `${folder}src/${name}.ts`) },
  };
}

for (const { folder } of packages) rmSync(`${root}${folder}dist`, { recursive: true, force: true });

/** `--no-dts` leaves the declarations out, which take most of the time. */
export default defineConfig(({ dts = true }) => [
  { ...library, dts },
  ...others.map((one) => built(one, dts === true)),
]);
