/** The packed tarballs of all packages in one folder, as a user installs them. Needs the npm registry. */
import { beforeAll, expect, inject, test } from 'vitest';

import { packages } from '../../packages/packages.mjs';
import { Application } from './application.js';

const application = new Application();
beforeAll(async () => {
  const { 'resilient-watcher': _library, ...others } = inject('tarballs');
  await application.install([...Object.values(others), '@grpc/grpc-js@1'], '--omit=optional');
});

test('each entry point is the same module by import and by require()', async () => {
  const specifiers = packages.slice(1).flatMap(({ entryPoints }) => entryPoints.map((one) => one.specifier));
  expect(specifiers.length).toBeGreaterThan(4);
  const program = `
    import { createRequire } from 'node:module';
    const require = createRequire(import.meta.url);
    for (const name of ${JSON.stringify(specifiers)}) {
      const [imported, required] = [await import(name), require(name)];
      const names = Object.keys(imported).filter((key) => key !== 'default' && key !== 'module.exports');
      console.log(name, names.length > 0 && names.every((key) => imported[key] === required[key]));
    }`;
  const { stdout } = await application.node('--input-type=module', '--eval', program);
  expect(stdout.trim().split('\n')).toEqual(specifiers.map((name) => `${name} true`));
});

test('the program examines JSON and YAML', async () => {
  const program = 'node_modules/.bin/resilient-watcher';
  application.write('m.json', '{"kind":"ConfigMap","metadata":{"name":"m"},"data":{}}');
  application.write('m.yaml', 'kind: ConfigMap\n');
  for (const file of ['m.json', 'm.yaml']) {
    const { stdout } = await application.run(program, 'doctor', '--manifest', file);
    expect(stdout).toContain('nothing found');
  }
});

test('the conformance suite runs a program', async () => {
  const { stdout } = await application.run('node_modules/.bin/watch-conformance', '--list');
  expect(stdout).toContain('swap');
});
