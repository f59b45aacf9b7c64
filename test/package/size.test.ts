/**
 * What each entry point costs a bundle: everything it exports, with its dependencies, minified and compressed. A change that
 * is worth its bytes raises the budget here, in the same commit.
 */
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

import { build } from 'esbuild';
import { expect, inject, test } from 'vitest';

import { entryPoints } from './application.js';

const { peerDependencies } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { readonly peerDependencies: object };
const peers = Object.keys(peerDependencies);

/** KiB. */
const BUDGETS: Readonly<Record<string, number>> = {
  'resilient-watcher': 82,
  'resilient-watcher/action': 12,
  'resilient-watcher/config': 65,
  'resilient-watcher/doctor': 24,
  'resilient-watcher/kubernetes': 82,
  'resilient-watcher/otel': 8,
  'resilient-watcher/prometheus': 8,
  'resilient-watcher/testing': 20,
  'resilient-watcher/tls': 62,
};
/** For an entry point that is not listed yet. */
const OTHERS = 60;
/** With the pages and examples that README links to, and the packages that are part of it. */
const TARBALL = 430;

test.each(entryPoints)('%s stays within its budget', async (name) => {
  const { outputFiles } = await build({
    stdin: {
      contents: `export * from '${name}'`,
      resolveDir: fileURLToPath(new URL('../../examples', import.meta.url)),
    },
    bundle: true,
    write: false,
    minify: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['@parcel/watcher', ...peers],
  });
  const bytes = gzipSync(outputFiles[0]?.contents ?? '').length / 1024;
  console.log(`${name}: ${bytes.toFixed(1)} KiB`);
  expect(bytes).toBeLessThan(BUDGETS[name] ?? OTHERS);
});

test('the tarball stays within its budget', () => {
  const bytes = statSync(inject('tarball')).size / 1024;
  console.log(`tarball: ${bytes.toFixed(1)} KiB`);
  expect(bytes).toBeLessThan(TARBALL);
});
