/** The declarations of the packed tarball, as the compilers of users read them. Needs the npm registry. */
import { beforeAll, expect, test } from 'vitest';

import { Application, entryPoints } from './application.js';

/** The oldest that is supported, and the newest. The repository itself is compiled with one in between. */
const COMPILERS = ['5.4', 'latest'];
const RESOLUTIONS: readonly [module: string, resolution: string][] = [
  ['node16', 'node16'],
  ['nodenext', 'nodenext'],
  ['esnext', 'bundler'],
];

const application = new Application();

beforeAll(async () => {
  const compilers = COMPILERS.map((version) => `typescript-${version}@npm:typescript@${version}`);
  // Types of the optional peers that the declarations name, so that declarations are checked whole.
  const peers = [
    '@grpc/grpc-js@1',
    '@kubernetes/client-node@1.4',
    '@opentelemetry/api@1',
    'prom-client@15',
    'undici@7',
  ];
  await application.install([...compilers, '@types/node@20', ...peers], '--omit=optional');
  application.copy('consumer.ts');
  application.write(
    'every.ts',
    entryPoints.map((name, at) => `export * as n${at} from '${name}';`).join('\n'),
  );
});

test.each(COMPILERS.flatMap((version) => RESOLUTIONS.map(([module, to]) => [version, to, module] as const)))(
  'TypeScript %s compiles a consumer under moduleResolution %s',
  async (version, resolution, module) => {
    const compiled = application.node(
      `node_modules/typescript-${version}/bin/tsc`,
      ...['--noEmit', '--strict', '--target', 'es2022', '--types', 'node', '--exactOptionalPropertyTypes'],
      ...['--module', module, '--moduleResolution', resolution],
      ...['consumer.ts', 'every.ts'],
    );
    const output = await compiled.then(
      () => '',
      (error: unknown) => (error as { readonly stdout: string }).stdout,
    );
    // Other packages' declarations are their own affair; ours have no fault, whatever skipLibCheck is.
    const ours = output
      .split('\n')
      .filter((line) => !/^(?:node_modules\/(?!resilient-watcher\/)|\s|$)/.test(line));
    expect(ours).toEqual([]);
  },
);
