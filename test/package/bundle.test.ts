/** Each entry point of the packed tarball can be bundled, and the bundle runs where nothing is installed. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { build, type Format } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { Application, entryPoints } from './application.js';

const application = new Application();
/** Outside the application, so that a bundle finds no package. */
const elsewhere = mkdtempSync(join(tmpdir(), 'resilient-watcher-bundles-'));
afterAll(() => rmSync(elsewhere, { recursive: true }));
beforeAll(() => application.install([], '--omit=optional'));

/** A program that uses all that an entry point exports, and its bundle. */
function paths(name: string, extension: string): { readonly entry: string; readonly bundle: string } {
  const file = name.replaceAll('/', '-');
  application.write(
    `${file}.js`,
    `import * as all from '${name}'; console.log(Object.keys(all).sort().join());`,
  );
  return { entry: application.path(`${file}.js`), bundle: join(elsewhere, `${file}.${extension}`) };
}

function run(bundle: string): string[] {
  return execFileSync(process.execPath, [bundle], { encoding: 'utf8', cwd: elsewhere }).trim().split(',');
}

describe.each(entryPoints)('%s', (name) => {
  test.each<[Format, string]>([
    ['esm', 'mjs'],
    ['cjs', 'cjs'],
  ])('is bundled by esbuild to %s', async (format, extension) => {
    const { entry, bundle } = paths(name, extension);
    const { errors } = await build({
      entryPoints: [entry],
      outfile: bundle,
      bundle: true,
      format,
      platform: 'node',
      target: 'node20',
      external: ['@parcel/watcher'],
      logLevel: 'silent',
    });
    expect(errors).toEqual([]);
    expect(run(bundle)).toEqual(await exportsOf(name));
  });
});

async function exportsOf(name: string): Promise<string[]> {
  const program = `import * as all from '${name}'; console.log(Object.keys(all).sort().join());`;
  const { stdout } = await application.node('--input-type=module', '--eval', program);
  return stdout.trim().split(',');
}
