import { defineConfig } from 'tsup';

export default defineConfig({
  entry: ['src/index.ts', 'src/config.ts', 'src/kubernetes.ts', 'src/testing.ts', 'src/tls.ts'],
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  dts: true,
  // One copy of every class for all doors, so that `instanceof` holds across them.
  splitting: true,
  sourcemap: false,
  clean: true,
});
