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
/** Of their own, since TypeScript 7 needs its optional packages. */
const compilers = new Application();

beforeAll(async () => {
  const packages = COMPILERS.map((version) => `typescript-${version}@npm:typescript@${version}`);
  await compilers.run('npm', 'install', '--no-audit', '--no-fund', '--loglevel=error', ...packages);
  // Types of the optional peers that the declarations name, so that declarations are checked whole.
  const peers = ['@kubernetes/client-node@1.4', '@opentelemetry/api@1', 'prom-client@15', 'undici@7'];
  await application.install(['@types/node@20', ...peers], '--omit=optional');
  application.copy('consumer.ts');
  application.write(
    'every.ts',
    entryPoints.map((name, at) => `export * as n${at} from '${name}';`).join('\n'),
  );
});

/** What the compiler says of the application; empty if nothing. */
async function compile(version: string, ...args: readonly string[]): Promise<string> {
  const compiler = compilers.path(`node_modules/typescript-${version}/bin/tsc`);
  return application.node(compiler, '--noEmit', '--strict', '--types', 'node', ...args).then(
    () => '',
    (error: unknown) => {
      const { stdout, message } = error as Error & { readonly stdout: string };
      return stdout || message;
    },
  );
}

test.each(COMPILERS.flatMap((version) => RESOLUTIONS.map(([module, to]) => [version, to, module] as const)))(
  'TypeScript %s compiles a consumer under moduleResolution %s',
  async (version, resolution, module) => {
    const output = await compile(
      version,
      ...['--target', 'es2022', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess'],
      ...['--module', module, '--moduleResolution', resolution],
      ...['consumer.ts', 'every.ts'],
    );
    // Other packages' declarations are their own affair; ours have no fault, whatever skipLibCheck is.
    const ours = output
      .split('\n')
      .filter((line) => !/^(?:node_modules\/(?!resilient-watcher\/)|\s|$)/.test(line));
    expect(ours).toEqual([]);
  },
);

test.each(COMPILERS)('TypeScript %s says which option of watch() is wrong', async (version) => {
  application.write(
    'wrong.ts',
    "import { watch } from 'resilient-watcher';\nvoid watch('/a', { resyncInterval: 5 });",
  );
  expect(await compile(version, '--module', 'nodenext', 'wrong.ts')).toContain(
    "'resyncInterval' does not exist in type 'ResilientWatcherOptions'",
  );
});
