import { inspect } from 'node:util';

import { parseServiceAccountTokens, type TokenCarrier } from '@resilient-watcher/csi';
import { mintTestToken } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

const KEY = 'csi.storage.k8s.io/serviceAccount.tokens';
const token = mintTestToken({ iat: 1_704_067_200, exp: 1_704_070_800 });
const other = mintTestToken({ iat: 1_704_067_200, exp: 1_704_067_800, aud: ['vault'] });
const expirationTimestamp = '2024-01-01T00:30:00Z';

function carried(tokens: unknown): TokenCarrier {
  return { secrets: { [KEY]: JSON.stringify(tokens) } };
}

test.each<[string, (text: string) => TokenCarrier]>([
  ['the secrets (KEP-5538)', (text) => ({ secrets: { [KEY]: text }, volumeContext: {} })],
  [
    'the secrets before the context',
    (text) => ({ secrets: { [KEY]: text }, volumeContext: { [KEY]: '{}' } }),
  ],
  ['the volume context', (text) => ({ secrets: {}, volumeContext: { [KEY]: text } })],
  ['the volume context of a request without secrets', (text) => ({ volumeContext: { [KEY]: text } })],
  [
    'the volume context as the proto spells it',
    (text) => ({ secrets: null, volume_context: { [KEY]: text } }),
  ],
])('tokens are read from %s', (_, request) => {
  const tokens = parseServiceAccountTokens(
    request(JSON.stringify({ '': { token, expirationTimestamp }, vault: { token: other } })),
  );
  expect(tokens.audiences).toEqual(['', 'vault']);
  expect(tokens.get('').value).toBe(token);
  expect(tokens.get('vault').value).toBe(other);
});

test.each([
  ['expirationTimestamp', { token, expirationTimestamp }, '2024-01-01T00:30:00.000Z'],
  ['expiry, as KEP-1855 has it', { token, expiry: expirationTimestamp }, '2024-01-01T00:30:00.000Z'],
  ['the token itself, when kubelet says nothing', { token }, '2024-01-01T01:00:00.000Z'],
])('the end of a token comes from %s', (_, entry, expected) => {
  const tokens = parseServiceAccountTokens(carried({ '': entry }));
  expect(new Date(tokens.expiresAt).toISOString()).toBe(expected);
});

test('a request without tokens has no audiences, and says what to change when one is wanted', () => {
  const tokens = parseServiceAccountTokens({ volumeContext: {} });
  expect(tokens.audiences).toEqual([]);
  expect(() => tokens.get('vault')).toThrow(
    /no token for the audience "vault" but no token at all.*tokenRequests/,
  );
  const some = parseServiceAccountTokens(carried({ sts: { token } }));
  expect(() => some.get('vault')).toThrow(expect.objectContaining({ code: 'ERR_CSI_TOKENS' }));
  expect(() => some.get('vault')).toThrow('but "sts"');
});

test.each<[string, string, string]>([
  ['text', `{"": {"token": "${token}"`, 'not JSON'],
  ['an empty text', '', 'not JSON'],
  ['a list', `[{"token":"${token}"}]`, 'the value is not an object'],
  ['null', 'null', 'the value is not an object'],
  ['a bare token', JSON.stringify(token), 'the value is not an object'],
  ['a token where an entry should be', JSON.stringify({ '': token }), 'the token for "" is not an object'],
  ['an entry without a token', '{"a":{}}', 'the token for "a" has no text'],
  ['a token that is no JWT', '{"a":{"token":"s3cret"}}', 'it is not a JWT'],
  ['half a token', JSON.stringify({ a: { token: token.slice(0, 50) } }), 'it is not a JWT'],
  ['a token that is a number', '{"a":{"token":1}}', 'the token for "a" has no text'],
  ['a date that is a number', JSON.stringify({ a: { token, expirationTimestamp: 5 } }), 'not a date'],
  ['a date that is none', JSON.stringify({ a: { token, expirationTimestamp: 'soon' } }), 'not a date'],
])('tokens that are %s are refused without being shown', (_, text, reason) => {
  const parse = (): unknown => parseServiceAccountTokens({ secrets: { [KEY]: text } });
  expect(parse).toThrow(expect.objectContaining({ code: 'ERR_CSI_TOKENS' }));
  expect(parse).toThrow(reason);
  try {
    parse();
  } catch (error) {
    expect(inspect(error, { depth: Infinity })).not.toMatch(/eyJ|s3cret/);
  }
});

test('printed forms never contain the tokens', () => {
  const tokens = parseServiceAccountTokens(carried({ '': { token }, vault: { token: other } }));
  const shown = [
    inspect({ tokens }, { depth: Infinity, showHidden: true }),
    JSON.stringify(tokens),
    String(tokens),
  ];
  expect(shown.join()).not.toContain('eyJ');
  expect(shown[2]).toContain(
    '"vault": ServiceAccountToken(system:serviceaccount:default:default, expires 2024',
  );
});
