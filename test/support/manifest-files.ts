/** The manifests that users apply: those of the packages, and the examples. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { packages, root } from '../../packages/packages.mjs';

/** The folders with manifests of Kubernetes. */
const manifestFolders: readonly string[] = [
  join(root, 'examples/kubernetes'),
  ...packages.map(({ folder }) => join(root, folder, 'deploy/kubernetes')),
].filter((folder) => existsSync(folder));

/** All of them, by their paths. */
export const manifestFiles: readonly string[] = manifestFolders.flatMap((folder) =>
  readdirSync(folder)
    .filter((file) => file !== 'kustomization.yaml')
    .map((file) => join(folder, file)),
);

/** The path of a manifest, in whichever folder it is. */
export function manifestPath(file: string): string {
  const folder = manifestFolders.find((each) => existsSync(join(each, file)));
  if (folder === undefined) throw new Error(`no folder has ${file}`);
  return join(folder, file);
}
