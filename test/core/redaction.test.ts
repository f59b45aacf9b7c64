import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { inspect } from 'node:util';

import fc from 'fast-check';
import type * as TypeScript from 'typescript';
import { describe, expect, test } from 'vitest';

import { TokenError } from '../../src/core/errors/token-error.js';
import { WriteError } from '../../src/write/write-error.js';
import { redact, SECRET_NAME } from '../../src/core/options/redaction.js';
import { redactError } from '../../src/core/errors/resilient-error.js';
import { mintTestToken } from '../../src/testing.js';
import { shownBy } from '../support/shown-by.js';
import { needs } from '../support/other-systems.js';

// An import would search its nine megabytes for what it exports, which takes longer than to run them.
const ts = createRequire(import.meta.url)('typescript') as typeof TypeScript;

const jwt = mintTestToken({ sub: 'system:serviceaccount:default:secret' });
const opaque = 'hvs.CAESIJ/q+7=xyz~0123';
const encodeAll = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');

/** The string literals of a source file, with `\0` for each value in a template. */
function literalsOf(file: string): string[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), {
    languageVersion: ts.ScriptTarget.Latest,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  });
  const found: string[] = [];
  const visit = (node: TypeScript.Node): void => {
    if (ts.isStringLiteralLike(node)) found.push(node.text);
    if (ts.isTemplateExpression(node)) {
      found.push(node.head.text + node.templateSpans.map(({ literal }) => `\0${literal.text}`).join(''));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

test('no message is written so that redaction takes what it says for a credential, as in `token: "exp"`', () => {
  const src = new URL('../../src/', import.meta.url);
  const assigned = new RegExp(String.raw`${SECRET_NAME}\\*["']?\s*[:=]\s*["'\0]`, 'i');
  const found = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => literalsOf(new URL(file, src).pathname).filter((text) => assigned.test(text)));
  // In a kubeconfig, not in a message.
  expect(new Set(found)).toEqual(new Set(['    token: \0']));
});

describe('redact', () => {
  test.each([0, 1, 2, 3, 4, 5])(
    'strikes out what is in base64 together with other text, %i bytes into it',
    (bytes) => {
      const before = 'users'.slice(0, bytes);
      for (const encoding of ['base64', 'base64url'] as const) {
        const shown = Buffer.from(`${before}${jwt}\n`).toString(encoding);
        expect(redact(`invalid data "${shown}"`)).toMatch(/^invalid data "\w{0,8}\[redacted\]"$/);
        const known = Buffer.from(`${before}${opaque}\n`).toString(encoding);
        expect(redact(`invalid data "${known}"`, [opaque])).toMatch(
          /^invalid data "\w{0,8}\[redacted\][\w=]{0,5}"$/,
        );
      }
    },
  );

  test('strikes out the password in a URL and nothing else of it', () => {
    expect(redact('connect ECONNREFUSED http://user:hunter2@proxy:8080/a:b@c')).toBe(
      'connect ECONNREFUSED http://user:[redacted]@proxy:8080/a:b@c',
    );
    expect(redact('GET https://host:8080/@scope: 404')).toBe('GET https://host:8080/@scope: 404');
  });

  test.each([
    ['as it is', jwt],
    ['cut off', jwt.slice(0, 60)],
    ['percent-encoded', jwt.replaceAll('.', '%2E')],
    ['percent-encoded whole', encodeAll(jwt)],
    ['percent-encoded twice', encodeURIComponent(encodeAll(jwt))],
    ['in base64', Buffer.from(jwt).toString('base64')],
  ])('strikes out an unknown JWT %s and nothing else', (_form, shown) => {
    expect(redact(`the token "${shown}" has expired: mint another`)).toBe(
      'the token "[redacted]" has expired: mint another',
    );
    expect(redact(`GET https://host/login?jwt=${shown}&next=1 failed`)).toBe(
      'GET https://host/login?jwt=[redacted]&next=1 failed',
    );
  });

  test.each([
    ['as it is', opaque],
    ['percent-encoded', encodeURIComponent(opaque)],
    ['percent-encoded whole', encodeAll(opaque)],
    ['percent-encoded twice', encodeURIComponent(encodeURIComponent(opaque))],
  ])('strikes out a known opaque token %s', (_form, shown) => {
    expect(redact(`lease "${shown}" was refused`, [opaque])).toBe('lease "[redacted]" was refused');
  });

  test('strikes out an opaque token that follows "Bearer" or "token", and no ordinary words', () => {
    expect(redact(`Authorization: Bearer ${opaque}`)).not.toContain('CAESIJ');
    expect(redact(`{"access_token":"${opaque}"}`)).not.toContain('CAESIJ');
    expect(redact(`?token=${encodeURIComponent(opaque)}&a=b`)).toBe('?token=[redacted]&a=b');
    for (const message of ['invalid bearer token', 'token: expired', 'service account token has expired']) {
      expect(redact(message)).toBe(message);
    }
  });

  test.each([
    'Cookie: session=horse; csrf=battery',
    'Set-Cookie: id=horse; Path=/; HttpOnly',
    '{"cookie":"a=horse; b=battery"}',
    "headers: { 'set-cookie': [ 'id=horse; Path=/' ] }",
    'GET https://host/v1?api_key=horse&x=1 failed',
    'GET https://host/v1?x=1&apikey%3Dhorse failed',
    'X-Api-Key: h0rse-battery',
    'client_secret=horse',
    'DB_PASSWORD=horse',
    'password = "horse battery"',
    '{\\"password\\":\\"horse\\"}',
    'passwd: h0rsebattery',
    'aws_secret_access_key=horse/battery',
    'psql "host=db password=horse user=app"',
  ])('strikes out what is named as a secret: %s', (text) => {
    const redacted = redact(`502: ${text}`);
    expect(redacted).toContain('[redacted]');
    expect(redacted).not.toMatch(/h[o0]rse|battery/);
  });

  test.each([
    'password: must be a string',
    'no cookie was sent',
    'the secret "db" was not found in namespace "a"',
    'secrets "token-abc" is forbidden',
    'GET https://host/v1?page=1&apiVersion=v1',
  ])('leaves alone what only speaks of secrets: %s', (text) => {
    expect(redact(text)).toBe(text);
  });

  test('strikes out a known secret in hex', () => {
    const hex = Buffer.from(`a${opaque}b`).toString('hex');
    for (const shown of [hex, hex.toUpperCase()]) {
      expect(redact(`bytes <${shown}>`, [opaque])).toBe('bytes <61[redacted]62>');
    }
  });

  test('recognises a JWT whatever else is a secret', () => {
    expect(redact(`403 for ${jwt}`, ['J', 'eyJh', jwt.slice(2, 8), opaque])).toBe('403 for [redacted]');
  });

  test('redacts before it cuts', () => {
    fc.assert(
      fc.property(fc.nat({ max: 1_200 }), (length) => {
        const text = redact(`${'.'.repeat(length)} ${opaque} and then some`, [opaque]);
        expect(text).not.toMatch(/hvs|CAE|xyz/);
      }),
    );
  });

  test('recognises long pieces and secrets of any length', () => {
    const long = 'x1'.repeat(40_000);
    expect(redact(`...${jwt.slice(20, 60)} is bad`, [jwt])).toBe('...[redacted] is bad');
    expect(redact(`got ${long}.`, [long])).toBe('got [redacted].');
  });
});

describe('redactError', () => {
  const deep = (value: unknown): unknown =>
    Array.from({ length: 9 }).reduce<unknown>((inner) => ({ inner }), value);
  const hiding: Readonly<Record<string, (secret: string) => unknown>> = {
    'in its message': (secret) => new Error(`refused ${secret}`),
    'deep in a field': (secret) => Object.assign(new Error('x'), { request: deep(secret) }),
    'after 10 000 characters': (secret) =>
      Object.assign(new Error('x'), { body: ' '.repeat(10_001) + secret }),
    'far behind in its message': (secret) => new Error(' '.repeat(20_000) + secret),
    'past the hundredth item': (secret) =>
      Object.assign(new Error('x'), { items: [...Array.from({ length: 150 }).fill(0), secret] }),
    'in a field that is not enumerable': (secret) =>
      Object.defineProperty(new Error('x'), 'config', { value: { secret } }),
    'behind a getter': (secret) => Object.defineProperty(new Error('x'), 'token', { get: () => secret }),
    'behind toJSON': (secret) => Object.assign(new Error('x'), { toJSON: () => secret }),
    'behind a custom inspect': (secret) => Object.assign(new Error('x'), { [inspect.custom]: () => secret }),
    'in its name and code': (secret) => Object.assign(new Error('x'), { name: secret, code: secret }),
    'in its stack': (secret) =>
      Object.assign(new Error('x'), { stack: `Error\n    at ${secret} (a.js:1:1)` }),
    'in its cause': (secret) => new Error('x', { cause: new Error(secret, { cause: deep(secret) }) }),
    'in an error of ours': (secret) => new TokenError('ERR_TOKEN_REQUEST', secret, { cause: deep(secret) }),
    'in a symbol field': (secret) => Object.assign(new Error('x'), { [Symbol('request')]: secret }),
    'in no error at all': deep,
    'as it is': (secret) => secret,
  };

  test.each(Object.keys(hiding))('shows no token that was %s', (where) => {
    for (const secret of [jwt, opaque, encodeURIComponent(opaque)]) {
      const shown = shownBy(redactError(hiding[where]?.(secret), [jwt, opaque]));
      expect(shown).not.toContain(secret);
      expect(shown).not.toContain('CAESIJ');
    }
  });

  test('keeps the advice, the fields that say what failed, and the frames of the stack', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:443'), {
      code: 'ECONNREFUSED',
      errno: -111,
      syscall: 'connect',
    });
    const thrown = Object.assign(new RangeError(`"${jwt}" is not taken: mint another`, { cause }), {
      status: 401,
    });
    const copy = redactError(thrown);
    expect(copy.message).toBe('"[redacted]" is not taken: mint another');
    expect(copy).toMatchObject({ name: 'RangeError', status: 401 });
    expect(copy.cause).toMatchObject({ code: 'ECONNREFUSED', errno: -111, syscall: 'connect' });
    expect(copy.stack).toContain('redaction.test.ts');
  });

  test('keeps the class of an error of this library', () => {
    needs('posix');
    const details = { path: '/etc/kubeconfig', step: 'rename', published: false } as const;
    const copy = redactError(new WriteError('ERR_WRITE_NO_SPACE', 'full', details));
    expect(copy).toBeInstanceOf(WriteError);
    expect(copy).toMatchObject({ ...details, code: 'ERR_WRITE_NO_SPACE', name: 'WriteError' });
  });

  test('survives an error whose fields throw', () => {
    const hostile = new Proxy(new Error('x'), {
      get() {
        throw new Error('no');
      },
    });
    expect(redactError(hostile)).toBeInstanceOf(Error);
  });
});
