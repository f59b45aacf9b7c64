import { join } from 'node:path';

import { KubeletVolume, type VolumeFiles } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { startExample } from '../support/program.js';
import { rounds } from '../support/rounds.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

/** A policy that lets these accounts read. */
const policyFor = (...accounts: string[]): VolumeFiles => ({
  'policy.yaml': JSON.stringify({ roles: { viewer: ['GET'] }, bindings: [{ role: 'viewer', accounts }] }),
});

async function authzScene() {
  const mount = join(temporaryDirectory(), 'authz');
  const volume = new KubeletVolume(mount);
  volume.publish(policyFor('alice'));
  const program = startExample('config-authz.mjs', { POLICY_FILE: join(mount, 'policy.yaml'), PORT: '0' });
  const [, port] = await program.until(/listening on (\d+)/);
  const url = `http://127.0.0.1:${port}/`;
  const answerTo = async (account: string, method = 'GET'): Promise<number> =>
    (await fetch(url, { method, headers: { 'x-account': account } })).status;
  const rejected = (): number => program.output.split(/policy (?:rejected|cannot be read)/).length - 1;
  return { volume, program, answerTo, rejected };
}

test('a new account is let in after each storm of swaps, also when the watch was killed in between', async () => {
  const { volume, program, answerTo, rejected } = await authzScene();
  expect(await answerTo('alice')).toBe(200);
  expect(await answerTo('alice', 'PUT')).toBe(403);

  const storms = [
    ['rename', 'recreated at once'],
    ['remove', 'recreated at once'],
    ['rename', 'seen missing first'],
    ['remove', 'seen missing first'],
  ] as const;
  const STORM = rounds(100, 300);
  for (const [round, [swap, then]] of storms.entries()) {
    const newcomer = `newcomer-${round}`;
    expect(await answerTo(newcomer)).toBe(403);
    const storming = new KubeletVolume(volume.directory, { swap });
    for (let index = 0; index < STORM; index += 1) {
      storming.publish(policyFor('alice', `passer-by-${round}-${index}`));
    }
    storming.publish(policyFor('alice', newcomer));
    await expect.poll(() => answerTo(newcomer)).toBe(200);
    expect(await answerTo(`passer-by-${round}-${STORM - 1}`)).toBe(403);

    // Every watch of the kernel in the volume ends here.
    const rejections = rejected();
    volume.remove();
    if (then === 'seen missing first') await expect.poll(rejected).toBeGreaterThan(rejections);
    expect(await answerTo('alice')).toBe(200);
  }

  volume.publish(policyFor('bob'));
  await expect.poll(() => answerTo('bob')).toBe(200);
  expect(await answerTo('alice')).toBe(403);
  expect(await program.terminated()).toBe(0);
});

test('a broken policy lets nobody in and locks nobody out', async () => {
  const { volume, answerTo, rejected } = await authzScene();
  const broken = [
    'roles: {',
    '',
    'bindings: []',
    JSON.stringify({ roles: {}, bindings: [{ role: 'x', accounts: ['mallory'] }] }),
  ];
  for (const [count, text] of broken.entries()) {
    volume.publish({ 'policy.yaml': text });
    await expect.poll(rejected).toBe(count + 1);
    expect(await answerTo('alice')).toBe(200);
    expect(await answerTo('mallory')).toBe(403);
  }
  volume.publish(policyFor('bob'));
  await expect.poll(() => answerTo('bob')).toBe(200);
  expect(await answerTo('alice')).toBe(403);
});

test('without a good policy the server does not start', async () => {
  const mount = join(temporaryDirectory(), 'authz');
  new KubeletVolume(mount).publish({ 'policy.yaml': 'roles: {}' });
  const program = startExample('config-authz.mjs', { POLICY_FILE: join(mount, 'policy.yaml') });
  expect((await program.finished()).code).toBe(1);
  expect(program.output).toContain('bindings');
});
