/** Packs the built package once for all tests of the tarball. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** The packed tarball. */
    readonly tarball: string;
  }
}

export default function pack({ provide }: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'resilient-watcher-pack-'));
  execFileSync('npm', ['pack', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder], {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [name = ''] = readdirSync(folder);
  provide('tarball', join(folder, name));
  return () => rmSync(folder, { recursive: true });
}
