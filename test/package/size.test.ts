/**
 * What each entry point costs a bundle: everything it exports, with its dependencies, minified and compressed. A change that
 * is worth its bytes raises the budget here, in the same commit.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';
import { expect, inject, test } from 'vitest';

import { packages } from '../../packages/packages.mjs';

/** The entry points of all packages, with what their bundles leave out: optional packages, and those of this repository. */
const own = packages.map(({ manifest }) => manifest.name);
const doors = packages.flatMap(
  ({ manifest: { name, optionalDependencies, peerDependencies }, entryPoints }) =>
    entryPoints.map(({ specifier }) => ({
      specifier,
      external: [
        ...Object.keys({ ...optionalDependencies, ...peerDependencies }),
        ...own.filter((other) => other !== name).flatMap((other) => [other, `${other}/*`]),
      ],
    })),
);

/** KiB. */
const BUDGETS: Readonly<Record<string, number>> = {
  'resilient-watcher': 73,
  'resilient-watcher/config': 105,
  'resilient-watcher/internal': 42.9,
  'resilient-watcher/kubernetes': 110,
  'resilient-watcher/otel': 9.5,
  'resilient-watcher/prometheus': 9,
  'resilient-watcher/testing': 9.5,
  'resilient-watcher/tls': 64,
  'resilient-watcher/trust': 59.6,
  '@resilient-watcher/cli/action': 7.5,
  '@resilient-watcher/cli/doctor': 4,
  '@resilient-watcher/cli/manifests': 6.5,
  '@resilient-watcher/csi': 4,
  '@resilient-watcher/grpc': 2,
  '@resilient-watcher/local-api-server': 61,
  '@resilient-watcher/sync-pods': 10,
};
/** For an entry point that is not listed yet. */
const OTHERS = 60;
/** What npm downloads, and what it leaves on the disk: readable code, types, two pages. */
const TARBALL = 273;
const INSTALLED = 971;

test.each(doors.map(({ specifier, external }) => [specifier, external] as const))(
  '%s stays within its budget',
  async (name, external) => {
    const { outputFiles } = await build({
      stdin: {
        contents: `export * from '${name}'`,
        resolveDir: fileURLToPath(new URL('../../examples', import.meta.url)),
      },
      bundle: true,
      write: false,
      minify: true,
      logLevel: 'error',
      format: 'esm',
      platform: 'node',
      target: 'node20',
      external: [...external],
    });
    const bytes = gzipSync(outputFiles[0]?.contents ?? '').length / 1024;
    console.log(`${name}: ${bytes.toFixed(1)} KiB`);
    expect(bytes).toBeLessThan(BUDGETS[name] ?? OTHERS);
  },
);

test('the tarball has what runs and its types, within the budget', () => {
  const [{ size, unpackedSize, files }] = JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts', inject('tarball')], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  ) as [{ size: number; unpackedSize: number; files: { path: string }[] }];
  console.log(`tarball: ${(size / 1024).toFixed(1)} KiB, installed: ${(unpackedSize / 1024).toFixed(1)} KiB`);
  expect(size / 1024).toBeLessThan(TARBALL);
  expect(unpackedSize / 1024).toBeLessThan(INSTALLED);
  const others = files.map(({ path }) => path).filter((path) => !/^dist\/.*\.(js|d\.ts)$/.test(path));
  expect(others.sort()).toEqual(['LICENSE', 'README.md', 'bin.js', 'package.json']);
});
