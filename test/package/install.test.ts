/** The packed tarball, installed as a user installs it. Needs the npm registry. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { beforeAll, describe, expect, test } from 'vitest';

import { packages, root } from '../../packages/packages.mjs';
import { Application, entryPoints } from './application.js';
import { certificates } from './programs/certificates.mjs';

describe('in an empty folder, without optional packages', () => {
  const application = new Application();
  beforeAll(() => application.install([], '--omit=optional'));

  test('everything works by import and by require()', async () => {
    application.write('certificates.json', certificates());
    const { stdout } = await application.node(application.copy('smoke.mjs'));
    expect(stdout).toBe(`ok node ${process.versions.node}\n`);
  });

  test('nothing else is installed than the packages that it stands on', () => {
    const packages = readdirSync(application.path('node_modules')).filter((name) => !name.startsWith('.'));
    expect(packages).toEqual(['eventemitter3', 'is-network-error', 'p-retry', 'resilient-watcher', 'yaml']);
  });

  test('npx with the name of the library prints the command of the program', async () => {
    await expect(
      application.run('npx', '--offline', 'resilient-watcher', 'doctor', '/etc/config'),
    ).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining('  npx @resilient-watcher/cli doctor') as string,
    });
  });

  test('a feature that needs an optional package names it, and the command that installs it', async () => {
    const { stdout } = await application.node(application.copy('missing-packages.mjs'));
    expect(stdout.trim().split('\n')).toEqual([
      expect.stringMatching(/^parcel: .*@parcel\/watcher/),
      'yaml: {"a":1}',
      expect.stringMatching(/^toml: ERR_PACKAGE .*npm install smol-toml$/),
      expect.stringMatching(/^client-node: .*npm install @kubernetes\/client-node(@1)?$/),
    ]);
  });

  test('Node 20 and later load it without a flag or a warning', async () => {
    // Without the variable, the entry point trust warns that it does nothing.
    const variable = "process.env.RESILIENT_WATCHER_CA = '';";
    const program = variable + entryPoints.map((name) => `await import('${name}');`).join('');
    const { stderr } = await application.node('--input-type=module', '--eval', program);
    expect(stderr).toBe('');
  });
});

test('npm ci warns of no package that does not support this version of Node', async () => {
  const application = new Application();
  for (const file of ['package-lock.json', ...packages.map(({ folder }) => `${folder}package.json`)]) {
    mkdirSync(dirname(application.path(file)), { recursive: true });
    application.write(file, readFileSync(join(root, file), 'utf8'));
  }
  const { stderr } = await application.run('npm', 'ci', '--dry-run', '--no-audit', '--no-fund');
  expect(stderr).not.toContain('EBADENGINE');
});

// The API of OpenTelemetry is one object for the whole process: another major version would be another one.
const RANGES: Readonly<Record<string, string>> = { '@opentelemetry/api': '>=1.9.0 <2' };

test('no peer is required, and any version of one may be installed', () => {
  const { peerDependencies, peerDependenciesMeta } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  ) as {
    readonly peerDependencies: Readonly<Record<string, string>>;
    readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>;
  };
  const inTheWay = Object.entries(peerDependencies).filter(
    ([name, range]) => range !== (RANGES[name] ?? '*') || peerDependenciesMeta[name]?.optional !== true,
  );
  expect(inTheWay).toEqual([]);
});

describe('beside older versions of the optional packages', () => {
  const application = new Application();

  test('it can be installed', async () => {
    const old = ['yaml@1', '@kubernetes/client-node@1.3', 'smol-toml@1.3'];
    await expect(application.install(old, '--omit=optional')).resolves.toBeUndefined();
  });

  test('the features that can work do, and the others name the version that they need', async () => {
    const { stdout } = await application.node(application.copy('missing-packages.mjs'));
    expect(stdout.trim().split('\n')).toEqual([
      expect.stringMatching(/^parcel: /),
      // Its own, beside the older one of the application.
      'yaml: {"a":1}',
      'toml: {"a":1}',
      // It was loaded, and there is no such file.
      expect.stringMatching(/^client-node: .*kubeconfig: it does not exist/),
    ]);
  });
});
