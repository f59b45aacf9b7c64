import { inspect } from 'node:util';

import type { ServiceAccountToken } from 'resilient-watcher';
import { tokenFromAnswer, tokenFromText, TokenError } from 'resilient-watcher';
import { mintTestToken } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

const EXPIRES = '2024-01-02T00:00:00Z';
const good = mintTestToken({ iat: 1_704_067_200, exp: 1_704_153_600 });
const [header = '', payload = ''] = good.split('.');

function failure(act: () => unknown): TokenError {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(TokenError);
    return error as TokenError;
  }
  throw new Error('it was accepted');
}

test.each<[string, unknown, string]>([
  ['nothing', undefined, 'the response is not an object'],
  ['null', null, 'the response is not an object'],
  ['a bare token', good, 'the response is not an object'],
  ['an empty object', {}, '"token" is not a string but undefined'],
  [
    'a token that is a number',
    { token: 7, expirationTimestamp: EXPIRES },
    '"token" is not a string but number',
  ],
  ['a token that is null', { token: null, expirationTimestamp: EXPIRES }, '"token" is not a string but null'],
  ['an empty token', { token: '', expirationTimestamp: EXPIRES }, 'it is empty'],
  ['a word', { token: 'secret', expirationTimestamp: EXPIRES }, 'it is not a JWT'],
  ['half a JWT', { token: good.slice(0, 60), expirationTimestamp: EXPIRES }, 'it is not a JWT'],
  ['a JWT with a line break', { token: `${good}\n`, expirationTimestamp: EXPIRES }, 'it is not a JWT'],
  ['claims that are not JSON', { token: `${header}.AAAA.`, expirationTimestamp: EXPIRES }, 'it is not a JWT'],
  ['claims that are a list', { token: `${header}.W10.`, expirationTimestamp: EXPIRES }, 'it is not a JWT'],
  ['no expiry', { token: good }, '"expirationTimestamp" is missing or is not a date'],
  ['an expiry of NaN', { token: good, expirationTimestamp: NaN }, '"expirationTimestamp" is missing or'],
  [
    'an infinite expiry',
    { token: good, expirationTimestamp: Infinity },
    '"expirationTimestamp" is missing or',
  ],
  [
    'an invalid Date',
    { token: good, expirationTimestamp: new Date('x') },
    '"expirationTimestamp" is missing or',
  ],
  ['an expiry without a zone', { token: good, expirationTimestamp: '2024-01-02T00:00:00' }, 'is not a date'],
  ['a word for an expiry', { token: good, expirationTimestamp: 'tomorrow' }, 'is not a date'],
  ['an object for an expiry', { token: good, expirationTimestamp: {} }, 'is not a date'],
])('an answer that is %s is malformed', (_, answer, reason) => {
  const error = failure(() => tokenFromAnswer(answer));
  expect(error).toMatchObject({ code: 'ERR_TOKEN_MALFORMED' });
  expect(error.message).toContain(reason);
  expect(inspect(error)).not.toContain(payload.slice(0, 20));
});

test.each<[string, Record<string, unknown>, string]>([
  ['exp that is text', { exp: '1704153600' }, '"exp" is not a number but string'],
  ['exp that is true', { exp: true }, '"exp" is not a number but boolean'],
  ['exp that is null', { exp: null }, '"exp" is not a number but null'],
  ['exp that is an object', { exp: {} }, '"exp" is not a number but object'],
  ['exp beyond every calendar', { exp: 1e300 }, '"exp" is not a date'],
  ['exp in milliseconds', { exp: 1_795_000_000_000 }, '"exp" is in milliseconds, and has to be in seconds'],
  ['iat in milliseconds', { iat: 1_795_000_000_000 }, '"iat" is in milliseconds'],
  ['nbf in milliseconds', { nbf: 1_795_000_000_000 }, '"nbf" is in milliseconds'],
  ['iat that is text', { iat: 'now' }, '"iat" is not a number'],
  ['nbf that is text', { nbf: 'now' }, '"nbf" is not a number'],
  ['warnafter that is text', { 'kubernetes.io': { warnafter: 'soon' } }, '"warnafter" is not a number'],
])('a token with %s is malformed', (_, claims, reason) => {
  const error = failure(() => tokenFromText(encode(claims)));
  expect(error.message).toContain(reason);
});

test.each<[string, Record<string, unknown>, Partial<ServiceAccountToken>]>([
  ['exp', { exp: 20 }, { expiresAt: 20_000, notAfter: 20_000 }],
  ['the last second of the year 9999', { exp: 253_402_300_799 }, { expiresAt: 253_402_300_799_000 }],
  ['warnafter', { exp: 20, 'kubernetes.io': { warnafter: 10 } }, { expiresAt: 10_000, notAfter: 20_000 }],
  ['neither, as of a Secret', {}, { expiresAt: Infinity, notAfter: Infinity }],
  ['kubernetes.io of null', { exp: 20, 'kubernetes.io': null }, { expiresAt: 20_000 }],
  ['iat only', { iat: 5, exp: 20 }, { issuedAt: 5_000, notBefore: 5_000 }],
  ['nbf and iat', { iat: 5, nbf: 6, exp: 20 }, { issuedAt: 5_000, notBefore: 6_000 }],
])('the dates of a token in a file come from %s', (_, claims, dates) => {
  expect(tokenFromText(` ${encode(claims)}\n`)).toMatchObject(dates);
});

test.each(['hvs.EXAMPLE', 'word', `${header}.AAAA.`])(
  'a token in a file that is not a JWT is refused with the option for it: %s',
  (text) => {
    expect(failure(() => tokenFromText(text)).message).toMatch(/it is not a JWT; .*format: 'opaque'$/);
    // There is no such option for the answer of a TokenRequest.
    const answer = { token: text, expirationTimestamp: EXPIRES };
    expect(failure(() => tokenFromAnswer(answer)).message).not.toContain('opaque');
  },
);

test.each([
  '{"access_token":"s3cret"}',
  '{\n  "token": "s3cret"\n}',
  `"${encode({ exp: 20 })}"`,
  '["s3cret"]',
])('JSON is no token of any format, and is not shown: %s', (text) => {
  for (const format of ['jwt', 'opaque'] as const) {
    const { message } = failure(() => tokenFromText(text, format));
    expect(message).toMatch(/it is JSON; only the token itself is wanted/);
    expect(message).not.toMatch(/s3cret|opaque/);
  }
});

test('an opaque token is anything that fits a header', () => {
  expect(tokenFromText(' s3cret\n', 'opaque')).toMatchObject({ value: 's3cret', expiresAt: Infinity });
  expect(failure(() => tokenFromText(' \n', 'opaque')).message).toContain('it is empty');
  expect(failure(() => tokenFromText('a b', 'opaque')).message).toContain('it does not fit a header');
});

test('only `value` shows the token itself', () => {
  const token = tokenFromText(good);
  const shown = [
    String(token),
    token as unknown as string,
    JSON.stringify({ token, list: [token] }),
    inspect(token, { depth: Infinity, showHidden: true }),
    inspect({ deep: { token } }, { depth: Infinity, showHidden: true }),
    inspect(new Error('x', { cause: token })),
    JSON.stringify(Object.entries(token)),
  ];
  for (const text of shown) {
    expect(text).not.toContain(payload);
    expect(text).not.toContain(good);
  }
  expect(token.value).toBe(good);
  expect(shown[0]).toBe(
    'ServiceAccountToken(system:serviceaccount:default:default, expires 2024-01-02T00:00:00.000Z)',
  );
});

test('the JSON form of a token has null for dates that it does not have', () => {
  expect(JSON.parse(JSON.stringify(tokenFromText('s3cret', 'opaque')))).toEqual({
    subject: null,
    issuedAt: null,
    expiresAt: null,
  });
});

function encode(claims: Record<string, unknown>): string {
  return `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`;
}
