import { readFileSync } from 'node:fs';
import { defineConfig } from 'tsup';

interface Manifest {
  readonly exports: Readonly<Record<string, unknown>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8')) as Manifest;

/** The source of each path that package.json exports or installs as a program. */
function entryPoints({ exports, bin = {} }: Manifest): string[] {
  const exported = Object.values(exports)
    .map((target) => (target as { readonly default?: string }).default)
    .filter((path) => path !== undefined);
  const built = [...new Set([...exported, ...Object.values(bin)])].filter((path) => path.endsWith('.js'));
  return built.map((path) => path.replace(/^(?:\.\/)?dist\/(.+)\.js$/, 'src/$1.ts'));
}

export default defineConfig({
  entry: entryPoints(manifest),
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  dts: true,
  // Dependencies and peers are left external by themselves, optional dependencies are not.
  external: Object.keys(manifest.optionalDependencies ?? {}),
  // One copy of every class for all entry points, so that `instanceof` holds across them.
  splitting: true,
  sourcemap: false,
  clean: true,
});
