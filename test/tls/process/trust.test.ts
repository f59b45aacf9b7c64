/** Preloaded, the package makes a program trust a CA bundle that changes. */
import { execFile, spawn } from 'node:child_process';
import { on } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../../support/temporary-directory.js';

const isSupported = 'setDefaultCACertificates' in tls;
const [one, two] = [new CertificateSigner({ name: 'one' }), new CertificateSigner({ name: 'two' })];
const both = `${one.certificate}${two.certificate}`;
const root = fileURLToPath(new URL('../../..', import.meta.url));

/** A mounted bundle. */
function mount(ca: string): { readonly volume: KubeletVolume; readonly path: string } {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'trust'));
  volume.publish({ 'ca.pem': ca });
  return { volume, path: volume.path('ca.pem') };
}

test.runIf(!isSupported)('an older Node.js is said to be one', async () => {
  const preloaded = runPreloaded('', { RESILIENT_WATCHER_CA: mount(both).path });
  await expect(preloaded).rejects.toMatchObject({ stderr: expect.stringMatching(/needs 22\.19/) as string });
});

describe.runIf(isSupported)('NODE_OPTIONS="--import resilient-watcher/trust"', () => {
  const LIST = `const { getCACertificates: get } = require('node:tls');
    const subjects = get('default').map((pem) => new (require('node:crypto').X509Certificate)(pem).subject);
    console.log(subjects.filter((subject) => /^CN=(one|two)$/.test(subject)).sort().join());`;

  test('trusts the bundle of the environment variable before the program begins', async () => {
    const { path } = mount(both);
    const { stdout } = await runPreloaded(LIST, { RESILIENT_WATCHER_CA: path });
    expect(stdout.trim()).toBe('CN=one,CN=two');
  });

  test('prints what is trusted at the start and after each change, from any working directory', async () => {
    const { path, volume } = mount(one.certificate);
    const env = { ...process.env, NODE_OPTIONS: PRELOAD, RESILIENT_WATCHER_CA: path };
    const program = spawn(process.execPath, ['--eval', 'setInterval(() => undefined, 60_000)'], {
      cwd: '/',
      env,
    });
    onTestFinished(() => void program.kill());
    const said = on(program.stderr.setEncoding('utf8'), 'data');
    const next = async (): Promise<string> => String(((await said.next()) as { value: unknown[] }).value[0]);
    expect(await next()).toBe(`resilient-watcher: 1 CA of ${path} is trusted by default\n`);
    volume.publish({ 'ca.pem': both });
    expect(await next()).toBe(`resilient-watcher: 2 CAs of ${path} are trusted by default\n`);
  });

  test('adds to what the program follows already', async () => {
    const program = `
      const { followDefaultCa, TlsFiles } = await import(${JSON.stringify(distOf('tls'))});
      await followDefaultCa(new TlsFiles({ ca: process.env.OWN }));
      process.env.RESILIENT_WATCHER_CA = process.env.OTHER;
      await import(${JSON.stringify(distOf('trust'))});
      ${LIST}
      process.exit();`;
    const env = { NODE_OPTIONS: '', OWN: mount(one.certificate).path, OTHER: mount(two.certificate).path };
    expect((await runPreloaded(program, env)).stdout.trim()).toBe('CN=one,CN=two');
  });

  test('does so in worker threads, too', async () => {
    const { path } = mount(one.certificate);
    const worker = join(temporaryDirectory(), 'worker.cjs');
    mkdirSync(dirname(worker), { recursive: true });
    writeFileSync(worker, LIST);
    const program = `new (require('node:worker_threads').Worker)(${JSON.stringify(worker)});`;
    const { stdout } = await runPreloaded(program, { RESILIENT_WATCHER_CA: path });
    expect(stdout.trim()).toBe('CN=one');
  });

  test('says so without the variable, is silent if that is empty, and warns of a bundle that is missing', async () => {
    expect(await runPreloaded(LIST, {})).toEqual({
      stdout: '\n',
      stderr: expect.stringContaining('RESILIENT_WATCHER_CA is not set') as string,
    });
    expect(await runPreloaded(LIST, { RESILIENT_WATCHER_CA: '' })).toEqual({ stdout: '\n', stderr: '' });
    const { stdout, stderr } = await runPreloaded(LIST, { RESILIENT_WATCHER_CA: '/nowhere/ca.pem' });
    expect([stdout.trim(), stderr]).toEqual(['', expect.stringContaining('no file "/nowhere/ca.pem"')]);
  });
});

/** As a deployment names it: a package name would be looked up from the working directory. */
const distOf = (name: string): string => new URL(`../../../dist/${name}.js`, import.meta.url).href;
const PRELOAD = `--import ${distOf('trust')}`;

function runPreloaded(program: string, env: NodeJS.ProcessEnv): Promise<{ stdout: string; stderr: string }> {
  const options = {
    cwd: root,
    env: { ...process.env, NODE_OPTIONS: PRELOAD, ...env },
  };
  return promisify(execFile)(process.execPath, ['--eval', `(async () => { ${program} })()`], options);
}
