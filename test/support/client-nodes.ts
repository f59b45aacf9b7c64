import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import * as clientNode from '@kubernetes/client-node';

/** The previous major version, which only `npm run test:package` installs. */
const previous = fileURLToPath(
  new URL('../package/node_modules/client-node-1/dist/index.js', import.meta.url),
);

/** The modules of `@kubernetes/client-node` that are here, by their major versions. */
export const clientNodes: readonly (readonly [major: string, module: typeof clientNode])[] = [
  ['2', clientNode],
  ...(existsSync(previous) ? [['1', (await import(previous)) as typeof clientNode] as const] : []),
];
