/** Every entry point is bundled with its optional packages, and the bundle uses each of them where nothing is installed. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import * as commonjsPlugin from '@rollup/plugin-commonjs';
import { nodeResolve } from '@rollup/plugin-node-resolve';
import { build } from 'esbuild';
import { rollup, type OutputOptions, type Plugin } from 'rollup';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { Application } from './application.js';

// Its declarations are those of CommonJS, its module is not.
const commonjs = commonjsPlugin.default as unknown as typeof commonjsPlugin.default.default;

const OPTIONAL = ['smol-toml', 'undici'];
const CLIENT = '@kubernetes/client-node';

const application = new Application();
/** Outside the application, so that a bundle finds no package. */
const elsewhere = mkdtempSync(join(tmpdir(), 'resilient-watcher-bundles-'));
afterAll(() => rmSync(elsewhere, { recursive: true }));

/** The banner of the documentation. */
const REQUIRE =
  "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

const USE = "import { useAll } from './optional-packages.mjs';";
let expected: string;

beforeAll(async () => {
  // Version 2 does not run on Node 20.
  await application.install([...OPTIONAL, `${CLIENT}@1`, 'webpack@5'], '--omit=optional');
  application.copy('optional-packages.mjs');
  application.write('app.js', `${USE} await useAll();`);
  application.write('without-await.js', `${USE} void useAll();`);
  const first = ['yaml', ...OPTIONAL, CLIENT].map((name) => `import '${name}';`).join('');
  application.write('imported-first.js', `${first} ${USE} await useAll();`);
  expected = (await application.node('app.js')).stdout;
  expect(JSON.parse(expected)).toMatchObject({ yaml: { a: 1 }, undici: 'ERR_TLS_UNAVAILABLE' });
});

function outputOf(bundle: string): string {
  return execFileSync(process.execPath, [bundle], { encoding: 'utf8', cwd: elsewhere });
}

/** The command for esbuild as docs/compatibility.md prints it. */
function documentedCommand(): string {
  const page = readFileSync(fileURLToPath(new URL('../../docs/compatibility.md', import.meta.url)), 'utf8');
  const [, command = ''] = /```sh\n(esbuild [^`]+)```/.exec(page) ?? [];
  return command;
}

test('by esbuild to ESM, with the command of the documentation', async () => {
  const programs = fileURLToPath(new URL('../../node_modules/.bin', import.meta.url));
  const output = join(elsewhere, 'bundle.mjs');
  const command = documentedCommand().replace('--outfile=bundle.mjs', `--outfile=${output}`);
  await application.run('sh', '-c', `PATH="${programs}:$PATH"; ${command}`);
  expect(outputOf(output)).toBe(expected);
});

test('by esbuild to CommonJS', async () => {
  const outfile = join(elsewhere, 'bundle.cjs');
  await build({
    entryPoints: [application.path('without-await.js')],
    outfile,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    external: ['@parcel/watcher'],
    logLevel: 'silent',
  });
  expect(outputOf(outfile)).toBe(expected);
});

test('by esbuild to several files', async () => {
  const outdir = join(elsewhere, 'split');
  await build({
    entryPoints: [application.path('app.js')],
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    banner: { js: REQUIRE },
    external: ['@parcel/watcher'],
    logLevel: 'silent',
  });
  expect(outputOf(join(outdir, 'app.mjs'))).toBe(expected);
});

const json: Plugin = {
  name: 'json',
  transform: (code, id) => (id.endsWith('.json') ? `export default ${code}` : undefined),
};

/** As on docs/compatibility.md. */
const manualChunks = (id: string): string | undefined =>
  id.includes('commonjsHelpers') ? 'shared' : undefined;

describe('by rollup', () => {
  test.each<[string, string, OutputOptions]>([
    ['to one file', 'without-await.js', { file: 'one.mjs', format: 'es', inlineDynamicImports: true }],
    ['to CommonJS', 'without-await.js', { file: 'one.cjs', format: 'cjs', inlineDynamicImports: true }],
    [
      'to one file with top-level await, if the packages are imported first',
      'imported-first.js',
      { file: 'await.mjs', format: 'es', inlineDynamicImports: true },
    ],
    [
      'to several files with top-level await, if what CommonJS needs is one of them',
      'app.js',
      { file: 'chunks/app.mjs', format: 'es', chunkFileNames: '[name]-[hash].mjs', manualChunks },
    ],
  ])('%s', async (_, input, { file = '', ...output }) => {
    const bundle = join(elsewhere, file);
    mkdirSync(dirname(bundle), { recursive: true });
    const bundled = await rollup({
      input: application.path(input),
      external: ['@parcel/watcher'],
      // undici asks whether this Node has it.
      plugins: [
        nodeResolve({ exportConditions: ['node'], preferBuiltins: true }),
        commonjs({ ignore: ['node:sqlite'] }),
        json,
      ],
      onwarn: () => undefined,
    });
    const place = output.inlineDynamicImports
      ? { file: bundle }
      : { dir: dirname(bundle), entryFileNames: 'app.mjs' };
    await bundled.write({ ...output, ...place });
    await bundled.close();
    expect(outputOf(bundle)).toBe(expected);
  });
});

/** Bundles with webpack, which is installed in the application, and prints its errors. */
const WEBPACK = `
import webpack from 'webpack';
const [, , entry, path] = process.argv;
const externals = { '@parcel/watcher': 'import @parcel/watcher' };
webpack(
  { mode: 'none', target: 'node20', context: process.cwd(), entry, externals, output: { path, filename: 'main.cjs' } },
  (error, stats) => console.log(error ?? stats.toString({ all: false, errors: true })),
);`;

describe('by webpack', () => {
  test('with the optional packages', async () => {
    application.write('webpack.mjs', WEBPACK);
    const { stdout } = await application.node('webpack.mjs', './app.js', join(elsewhere, 'webpack'));
    expect(stdout.trim()).toBe('');
    expect(outputOf(join(elsewhere, 'webpack/main.cjs'))).toBe(expected);
  });

  test('without them: what is absent fails when it is used, not the build', async () => {
    application.write('webpack.mjs', WEBPACK);
    await application.run(
      'npm',
      'uninstall',
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
      '--omit=optional',
      ...OPTIONAL,
      CLIENT,
    );
    application.write(
      'absent.js',
      `${USE} import { tomlParser } from 'resilient-watcher/config';
       console.log(typeof useAll, await tomlParser.parse('a = 1').catch(({ code }) => code));`,
    );
    const { stdout } = await application.node('webpack.mjs', './absent.js', join(elsewhere, 'absent'));
    expect(stdout.trim()).toBe('');
    expect(outputOf(join(elsewhere, 'absent/main.cjs'))).toBe('function ERR_PACKAGE\n');
  });
});
