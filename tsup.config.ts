import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { defineConfig, type Options } from 'tsup';
import ts from 'typescript';

import { packages, root, type Package } from './packages/packages.mjs';

/**
 * Code without its comments, which are in the declarations: esbuild would keep those of class members, a tenth of it. And a module
 * of Node.js by `getBuiltinModule` where `import` costs: it reads all that the module has, and so loads the streams of `node:fs`, the
 * parsers of `node:util` and the files of `node:buffer`.
 */
const prepared: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'prepared',
  setup(build) {
    const compilerOptions = {
      removeComments: true,
      verbatimModuleSyntax: true,
      target: ts.ScriptTarget.ES2022,
    };
    build.onLoad({ filter: /\/src\/.+\.ts$/ }, ({ path }) => {
      const { outputText } = ts.transpileModule(readFileSync(path, 'utf8'), { compilerOptions });
      const contents = outputText.replaceAll(
        /^import (.+) from '(node:(?:buffer|fs|util))';$/gm,
        (_, names: string, module) =>
          `const ${names.replaceAll(' as ', ': ')} = process.getBuiltinModule('${module}');`,
      );
      // It is loaded on its own, so it is an entry point, too.
      return {
        contents: path.endsWith('/backends/parcel.ts') ? `import '../../index.js';${contents}` : contents,
      };
    });
  },
};

/** Opening their files took a third of the processor time of `import`. They stay dependencies, for the declarations and audits. */
const COMPILED_IN = ['eventemitter3', 'p-retry', 'is-network-error'];

/** The license of each package that the library contains stands above its code. */
const licensed: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'licensed',
  setup(build) {
    build.onLoad(
      { filter: new RegExp(`/node_modules/(${COMPILED_IN.join('|')})/index\\.js$`) },
      ({ path }) => {
        const folder = dirname(path);
        const license = readdirSync(folder).find((name) => /^license$/i.test(name)) ?? 'LICENSE';
        const text = readFileSync(join(folder, license), 'utf8').trim();
        return { contents: `/*! ${basename(folder)}\n\n${text}\n*/\n${readFileSync(path, 'utf8')}` };
      },
    );
  },
};

const common: Options = {
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  removeNodeProtocol: false,
  external: ['@parcel/watcher'],
  esbuildPlugins: [prepared, licensed],
};

const [{ entryPoints: doors }, ...others] = packages as [Package, ...Package[]];

/** Every entry point imports `index.ts`, even if it uses none of it, so that what they share is one file to open. */
const library: Options = {
  ...common,
  entry: doors.map(({ name }) => `src/${name}.ts`),
  noExternal: COMPILED_IN,
  esbuildOptions: (options) =>
    Object.assign(options, {
      chunkNames: 'lib/[name]-[hash]',
      ignoreAnnotations: true,
      legalComments: 'inline',
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

for (const { folder } of packages) rmSync(`${root}${folder}dist`, { recursive: true, force: true });

/** `--no-dts` leaves the declarations out, which take most of the time. */
export default defineConfig(({ dts = true }) => [
  { ...library, dts },
  ...others.map((one) => built(one, dts === true)),
]);
