import { inspect } from 'node:util';

import { KubeConfig } from '@kubernetes/client-node';
import { renderKubeconfig, type KubeconfigOptions } from 'resilient-watcher/kubernetes';
import { mintTestToken } from 'resilient-watcher/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { createAuthority, createServerPair } from '../support/certificates.js';

const token = mintTestToken();
const authority = createAuthority('one');
const ca = authority.cert;
const { key } = createServerPair(authority);
const { cert: otherCa } = createAuthority('two');

const full: KubeconfigOptions = {
  server: 'https://[fd00::1]:6443',
  token,
  caData: ca + otherCa,
  tlsServerName: 'kubernetes.default.svc',
  clusterName: 'prod: "eu" #1',
  user: 'builder',
  contextName: 'null',
  namespace: 'ci',
};

test('client-node loads every value as it was given', () => {
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromString(renderKubeconfig(full));
  expect(kubeConfig.getCurrentContext()).toBe('null');
  expect(kubeConfig.getCurrentCluster()).toMatchObject({
    name: 'prod: "eu" #1',
    server: 'https://[fd00::1]:6443',
    caData: Buffer.from(ca + otherCa).toString('base64'),
    tlsServerName: 'kubernetes.default.svc',
  });
  expect(kubeConfig.getCurrentUser()).toMatchObject({ name: 'builder', token });
  expect(kubeConfig.getContextObject('null')).toMatchObject({ namespace: 'ci' });
});

/** Not the unit `binary` of `fc.string`, whose table of all code points takes a second to build. */
const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff })
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code));

/** What YAML does not count as printable, and line separators. */
const unprintable = [0x7f, 0x80, 0x85, 0x9f, 0x2028, 0x2029, 0xfeff, 0xfffe, 0xffff].map((code) =>
  String.fromCharCode(code),
);

test('names with any characters are preserved, and written with printable ones', () => {
  const unit = fc.oneof(anyCharacter, fc.constantFrom(...unprintable));
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit }), (name) => {
      const kubeConfig = new KubeConfig();
      const text = renderKubeconfig({ server: 'https://a', token, user: name, clusterName: name });
      expect(text).not.toMatch(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/);
      kubeConfig.loadFromString(text);
      expect(kubeConfig.getCurrentUser()?.name).toBe(name);
      expect(kubeConfig.getCurrentCluster()?.name).toBe(name);
    }),
  );
});

test.each<[string, Record<string, unknown>, string]>([
  ['no server', { server: undefined }, 'option "server" must be an http(s) URL, got undefined'],
  ['a server without a scheme', { server: '10.0.0.1:443' }, 'option "server" must be an http(s) URL'],
  ['a server with a password in it', { server: 'https://u:p@a' }, 'option "server"'],
  ['no token', { token: undefined }, 'option "token" must be a non-empty string'],
  ['a token that is an object', { token: { value: token } }, 'option "token" must be a non-empty string'],
  ['an empty name', { user: '' }, 'option "user" must be a non-empty string of valid Unicode, got ""'],
  ['half a surrogate pair', { user: '\ud800' }, 'option "user" must be a non-empty string of valid Unicode'],
  ['an unknown option', { cluster: 'x' }, 'unknown option "cluster"'],
])('%s is refused by name', (_, change, reason) => {
  const render = (): string => renderKubeconfig({ ...full, ...change });
  expect(render).toThrow(TypeError);
  expect(render).toThrow(reason);
  expect(render).not.toThrow('eyJ');
});

test.each<[string, string]>([
  ['nothing but space', ' \n'],
  ['a word', 'ca.crt'],
  ['half a certificate', ca.slice(0, 200)],
  ['one and a half', ca + ca.slice(0, 200)],
  ['a certificate and a key', ca + key],
  ['not a certificate inside', '-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n'],
])('a CA that is %s is refused, and not shown', (_, caData) => {
  try {
    renderKubeconfig({ ...full, caData });
  } catch (error) {
    expect(error).toMatchObject({ name: 'KubernetesError', code: 'ERR_KUBECONFIG' });
    expect(inspect(error)).not.toContain('PRIVATE KEY');
    return;
  }
  throw new Error('it was accepted');
});
