/** Installs the clients, and the packed tarballs beside them as a user does. Needs the npm registry. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const recipes = join(import.meta.dirname, '..');
const root = join(recipes, '../..');

export default function install(): void {
  const folder = mkdtempSync(join(tmpdir(), 'resilient-watcher-pack-'));
  const npm = (cwd: string, ...args: string[]): unknown =>
    execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], {
      cwd,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  try {
    npm(root, 'pack', '--workspaces', '--ignore-scripts', '--pack-destination', folder);
    npm(recipes, 'ci');
    const tarballs = readdirSync(folder).map((name) => join(folder, name));
    npm(recipes, 'install', '--no-save', '--no-package-lock', ...tarballs);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
