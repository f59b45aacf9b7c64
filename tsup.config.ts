import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, sep } from 'node:path';

import * as commonjsPlugin from '@rollup/plugin-commonjs';
import { nodeResolve } from '@rollup/plugin-node-resolve';
import { transform } from 'esbuild';
import { rollup, type Plugin } from 'rollup';
import { defineConfig, type Options } from 'tsup';

// Its declarations are those of CommonJS, its module is not.
const commonjs = commonjsPlugin.default as unknown as typeof commonjsPlugin.default.default;

interface Manifest {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8')) as Manifest;

/** Where the modules are compiled to before they are joined. */
const MODULES = 'build';
const OUTPUT = 'dist';

/** Each path, without extension, that package.json exports or installs as a program. */
function entryPoints({ exports, bin = {} }: Manifest): string[] {
  const exported = Object.values(exports)
    .map((target) => (target as { readonly default?: string }).default)
    .filter((path) => path !== undefined);
  const built = [...new Set([...exported, ...Object.values(bin)])].filter((path) => path.endsWith('.js'));
  return built.map((path) => path.replace(/^(?:\.\/)?dist\/(.+)\.js$/, '$1'));
}
const entries = entryPoints(manifest);

/**
 * What is loaded with what. To open a module takes as long as to compile 20 KiB of it, so what is used together is one
 * file; what only some entry points use is another. The order of the imports, core ← watch ← token, keeps cycles out.
 */
const CHUNKS: Readonly<Record<string, RegExp>> = {
  core: /\/build\/core\//,
  // Of the backends, `parcel` is loaded when it is subscribed to.
  watch: /\/build\/(?:fs|watch)\/(?!backends\/(?:parcel|inotify))/,
  token: /\/build\/(?:write|token)\//,
  telemetry: /\/build\/telemetry\/(?!otel|prometheus)/,
};

function chunkOf(id: string): string | undefined {
  const path = id.replaceAll(sep, '/');
  return Object.keys(CHUNKS).find((name) => CHUNKS[name]?.test(path));
}

/** The licenses of the packages that are part of the bundle, which have to be passed on with it. */
function thirdPartyLicenses(): Plugin {
  return {
    name: 'third-party-licenses',
    generateBundle(_options, bundle) {
      const ids = Object.values(bundle).flatMap((file) => (file.type === 'chunk' ? file.moduleIds : []));
      const packages = new Set(
        ids.map((id) => /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id.replaceAll(sep, '/'))?.[1]),
      );
      const texts = [...packages]
        .filter((path) => path !== undefined)
        .sort()
        .map((path) => {
          const file = readdirSync(path).find((name) => /^licen[cs]e/i.test(name));
          if (file === undefined) throw new Error(`${path} has no license to pass on`);
          const { name, version } = JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as {
            readonly name: string;
            readonly version: string;
          };
          return `${name} ${version}\n\n${readFileSync(join(path, file), 'utf8').trim()}\n`;
        });
      this.emitFile({
        type: 'asset',
        fileName: 'THIRD-PARTY-LICENSES.txt',
        source: `Parts of these packages are included in the files of this folder.\n\n${texts.join(`\n${'-'.repeat(72)}\n\n`)}`,
      });
    },
  };
}

/** Leaves out comments, which editors take from the declarations. esbuild keeps those that bundlers read. */
function withoutComments(): Plugin {
  return {
    name: 'without-comments',
    async renderChunk(code) {
      return { code: (await transform(code, { legalComments: 'none', charset: 'utf8' })).code, map: null };
    },
  };
}

/**
 * Joins the modules into few files, with one copy of every class, so that `instanceof` holds. The small packages that each
 * entry point loads are joined, too: it takes 5 ms less to load them. So is jsonc-parser, since esbuild cannot bundle its
 * CommonJS build (`Cannot find module './impl/format'`).
 */
async function layOut(): Promise<void> {
  const { dependencies, optionalDependencies, peerDependencies } = manifest;
  const bundle = await rollup({
    input: Object.fromEntries(entries.map((entry) => [entry, join(MODULES, `${entry}.js`)])),
    external: [/^node:/, ...Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })],
    plugins: [
      nodeResolve({ exportConditions: ['node'], preferBuiltins: true }),
      commonjs(),
      thirdPartyLicenses(),
      withoutComments(),
    ],
    treeshake: { moduleSideEffects: false },
  });
  await bundle.write({
    dir: OUTPUT,
    format: 'es',
    chunkFileNames: 'lib/[name].js',
    manualChunks: chunkOf,
    hoistTransitiveImports: false,
  });
  await bundle.close();
  rmSync(MODULES, { recursive: true });
}

// Both configurations write to it, so neither may clean it.
rmSync(OUTPUT, { recursive: true, force: true });

const modules: Options = {
  entry: ['src/**/*.ts'],
  outDir: MODULES,
  bundle: false,
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  removeNodeProtocol: false,
  onSuccess: layOut,
};

const declarations: Options = {
  entry: Object.fromEntries(entries.map((entry) => [entry, `src/${entry}.ts`])),
  outDir: OUTPUT,
  format: ['esm'],
  // The declarations of eventemitter3 are part of ours, as its code is.
  dts: { only: true, resolve: ['eventemitter3'] },
};

/** `--no-dts` leaves the declarations out, which take most of the time. */
export default defineConfig(({ dts }) => (dts === false ? [modules] : [modules, declarations]));
