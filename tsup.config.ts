import { existsSync } from 'node:fs';

import { defineConfig, type Options } from 'tsup';

import { packages, root, type Package } from './packages/packages.mjs';

const common: Options = {
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  removeNodeProtocol: false,
  external: ['@parcel/watcher'],
};

const [{ entryPoints: doors }, ...others] = packages as [Package, ...Package[]];

/** Every entry point imports `index.ts`, even if it uses none of it, so that what they share is one file to open. */
const library: Options = {
  ...common,
  entry: doors.map(({ name }) => `src/${name}.ts`),
  esbuildOptions: (options) =>
    Object.assign(options, {
      chunkNames: 'lib/[name]-[hash]',
      ignoreAnnotations: true,
    }),
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

/** `--no-dts` leaves the declarations out, which take most of the time. */
export default defineConfig(({ dts = true }) => [
  { ...library, dts },
  ...others.map((one) => built(one, dts === true)),
]);
