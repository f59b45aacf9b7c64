import { readFileSync, rmSync } from 'node:fs';

import { defineConfig, type Options } from 'tsup';
import ts from 'typescript';

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}

const { exports } = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8')) as Manifest;
const files = Object.values(exports).flatMap((file) => (typeof file === 'string' ? [] : [file.default]));
const names = files.map((file) => file.replace(/^\.\/dist\/(.+)\.js$/, '$1'));

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

/** Every entry point imports `index.ts`, even if it uses none of it, so that what they share is one file to open. */
const library: Options = {
  ...common,
  entry: names.map((name) => `src/${name}.ts`),
  esbuildOptions: (options) =>
    Object.assign(options, { chunkNames: 'lib/[name]-[hash]', ignoreAnnotations: true }),
};

/** The program uses the built entry points, which are one folder up from all of its files. */
const program: Options = {
  ...common,
  entry: { 'cli/main': 'src/cli/main.ts' },
  external: ['@parcel/watcher', new RegExp(`^\\.\\./(${names.join('|')})\\.js$`)],
  esbuildOptions: (options) => Object.assign(options, { chunkNames: 'cli/[name]-[hash]' }),
};

/** The conformance suite, a package of its own. */
const suite: Options = {
  ...common,
  entry: { main: 'conformance/src/main.ts' },
  outDir: 'conformance/dist',
};

// Several configurations write to it, so none may clean it.
for (const directory of ['dist', 'conformance/dist']) rmSync(directory, { recursive: true, force: true });

/** `--no-dts` leaves the declarations out, which take most of the time. */
export default defineConfig(({ dts = true }) => [{ ...library, dts }, program, suite]);
