/** Packs the built packages once for all tests of the tarballs. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { TestProject } from 'vitest/node';

import { packages, root, type Package } from '../../packages/packages.mjs';

declare module 'vitest' {
  interface ProvidedContext {
    /** The packed tarball of the library. */
    readonly tarball: string;
    /** The packed tarballs of all packages, by their names. */
    readonly tarballs: Readonly<Record<string, string>>;
  }
}

export default function pack({ provide }: TestProject): () => void {
  const folder = mkdtempSync(join(tmpdir(), 'resilient-watcher-pack-'));
  execFileSync(
    'npm',
    ['pack', '--workspaces', '--ignore-scripts', '--loglevel=error', '--pack-destination', folder],
    {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
    },
  );
  const fileOf = ({ name, version }: Package['manifest']): string =>
    join(folder, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`);
  const tarballs = Object.fromEntries(packages.map(({ manifest }) => [manifest.name, fileOf(manifest)]));
  provide('tarballs', tarballs);
  provide('tarball', tarballs['resilient-watcher'] ?? '');
  return () => rmSync(folder, { recursive: true });
}
