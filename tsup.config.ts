import { defineConfig } from 'tsup';

export default defineConfig({
  entry: {
    ...Object.fromEntries(
      ['index', 'config', 'kubernetes', 'testing', 'action', 'doctor'].map((n) => [n, `src/${n}.ts`]),
    ),
    cli: 'src/cli/main.ts',
  },
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  dts: true,
  // One copy of every class for all doors, so that `instanceof` holds across them.
  splitting: true,
  sourcemap: false,
  clean: true,
});
