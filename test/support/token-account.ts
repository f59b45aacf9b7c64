/** An account whose token the program requests from the API server of a scene. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { ClusterScene } from './cluster-scene.js';

/** The flags that make `token` ask the server of the scene for a token of `ci/builder`, and where it writes it. */
export async function account(
  scene: ClusterScene,
  out = join(scene.directory, 'out', 'token'),
): Promise<{ out: string; flags: readonly string[] }> {
  const { token } = await scene.server.mint('ci', 'builder', { expirationSeconds: 24 * 3_600 });
  const flags = [
    '--out',
    out,
    '--service-account',
    'ci/builder',
    '--kubeconfig',
    scene.kubeconfigFile(token),
  ];
  return { out, flags };
}

/** The claims of the token in a file. */
export function claimsIn(file: string): {
  readonly sub: string;
  readonly aud: readonly string[];
  readonly exp: number;
} {
  const [, claims = ''] = readFileSync(file, 'utf8').split('.');
  return JSON.parse(Buffer.from(claims, 'base64url').toString()) as ReturnType<typeof claimsIn>;
}
