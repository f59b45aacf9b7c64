/** The option `parse` of `SecretFile` and `TokenFile`: a field of a file. */
import { inspect } from 'node:util';
import { join } from 'node:path';

import { SecretFile, TokenFile, type TextParser } from 'resilient-watcher';
import { FakeClock, KubeletVolume, mintTestToken, ScriptedBackend } from 'resilient-watcher/testing';
import { describe, expect, onTestFinished, test } from 'vitest';

import { temporaryDirectory } from '../support/temporary-directory.js';

const expiresAt = Date.now() + 3_600_000;
const [one, two] = ['one', 'two'].map((sub) => mintTestToken({ sub, expiresAt }));

const FILES = {
  SecretFile: { values: ['correct horse', 'battery staple'], create: SecretFile, code: 'ERR_SECRET_INVALID' },
  TokenFile: {
    values: [one ?? '', two ?? ''],
    create: TokenFile as unknown as typeof SecretFile,
    code: 'ERR_TOKEN_MALFORMED',
  },
};

/** A field, by a parser that waits. */
const field =
  (name: string): TextParser =>
  async (text) => {
    await Promise.resolve();
    return (JSON.parse(text) as Record<string, string>)[name] ?? '';
  };

describe.each(Object.entries(FILES))('%s', (_kind, { values, create, code }) => {
  const [first = '', second = ''] = values;

  function mount(contents: string, parse: TextParser) {
    const volume = new KubeletVolume(join(temporaryDirectory(), 'secret'));
    volume.publish({ login: contents });
    const clock = new FakeClock(Date.now());
    const backend = new ScriptedBackend();
    const file = new create(volume.path('login'), { parse, clock, backend, resyncIntervalMs: 0 });
    onTestFinished(() => file.close());
    const events: string[] = [];
    file.on('change', () => events.push('change'));
    file.on('rejected', ({ error }) => events.push(error.code));
    file.on('accepted', () => events.push('accepted'));
    const publish = async (text: string): Promise<void> => {
      volume.publish({ login: text });
      await file.check();
    };
    return { file, clock, events, publish, volume };
  }

  test('takes a field of JSON, follows it, and reports no change of another field', async () => {
    const { file, events, publish } = mount(JSON.stringify({ a: first, b: 1 }), field('a'));
    expect((await file.get()).value).toBe(first);
    await publish(JSON.stringify({ a: first, b: 2 }));
    await publish(JSON.stringify({ a: second, b: 2 }));
    expect((await file.get()).value).toBe(second);
    expect(events).toEqual(['change', 'change']);
  });

  test.each<[string, TextParser, string]>([
    [
      'throws',
      () => {
        throw new Error(`no field in {"hidden":"${first}"}`);
      },
      'no field in ',
    ],
    ['rejects', () => Promise.reject(new Error('no field')), 'no field'],
    ['is wrong about the syntax', (text) => JSON.parse(`${text}}`) as string, 'failed: SyntaxError'],
    ['returns an object', (text) => JSON.parse(text) as string, 'must return a text, got an object'],
    ['returns a number', () => 4711 as unknown as string, 'must return a text, got a Number'],
    ['returns nothing', () => undefined as unknown as string, 'must return a text, got undefined'],
    ['returns an empty text', () => ' \n', 'must return a text, got an empty one'],
  ])(
    'keeps the last good value when the parser %s, and shows nothing of the file',
    async (_name, bad, says) => {
      let parse = field('a');
      const { file, events, publish } = mount(JSON.stringify({ a: first }), (...args) => parse(...args));
      await file.start();
      parse = bad;
      await publish(JSON.stringify({ hidden: first }));
      expect(events).toEqual(['change', code]);
      expect((await file.get()).value).toBe(first);
      const message = file.status().rejected?.message ?? '';
      expect(message).toContain(`The option "parse" `);
      expect(message).toContain(says);
      expect(message).toContain(file.path);
      const shown = [message, inspect(file, { depth: 9 }), JSON.stringify(file.status())].join('\n');
      for (const hidden of [first, '4711', 'hidden":']) expect(shown).not.toContain(hidden);
      parse = field('hidden');
      await publish(JSON.stringify({ hidden: first }) + ' ');
      expect(events).toEqual(['change', code, 'accepted']);
    },
  );

  test('shows no line of a file of several lines that the error of a parser quotes', async () => {
    const lines = ['user: app', 'pin: 314159', 'end'];
    const { file, events } = mount(lines.join('\n'), (text) => {
      throw new Error(`expected "=": ${text.split('\n').reverse().join(' | ')}`);
    });
    await file.start();
    expect(events).toEqual([code]);
    for (const line of lines.slice(0, 2)) expect(file.status().rejected?.message).not.toContain(line);
  });

  test('check() waits for the newest contents while earlier ones are parsed', async () => {
    const parsed: (() => void)[] = [];
    let isSlow = false;
    const { file, volume } = mount(JSON.stringify({ a: first }), async (text, parsing) => {
      if (isSlow) await new Promise<void>((resolve) => parsed.push(resolve));
      return field('a')(text, parsing);
    });
    await file.start();
    isSlow = true;
    const checks: Promise<string | undefined>[] = [];
    for (const contents of [{ b: 1 }, { a: second }]) {
      volume.publish({ login: JSON.stringify(contents) });
      checks.push(file.check().then(() => file.current?.value));
      await expect.poll(() => parsed).toHaveLength(1);
    }
    parsed[0]?.();
    await expect.poll(() => parsed).toHaveLength(2);
    parsed[1]?.();
    expect(await checks[1]).toBe(second);
  });

  test('rejects a parser that has not ended in ten seconds, and aborts its signal', async () => {
    const signals: AbortSignal[] = [];
    const { file, clock, events } = mount('{}', (_, { signal }) => {
      signals.push(signal);
      return new Promise<string>(() => {});
    });
    const got = file.get();
    got.catch(() => {});
    await expect.poll(() => signals).toHaveLength(1);
    await clock.advance(10_000);
    await expect(got).rejects.toMatchObject({ cause: { code } });
    expect([events, signals[0]?.aborted]).toEqual([[code], true]);
  });

  test('neither the text nor what was found in it is shown by the error of a listener', async () => {
    const text = JSON.stringify({ a: first, other: 'something else' });
    const { file } = mount(text, field('a'));
    const errors: string[] = [];
    file.on('error', (error) => errors.push(inspect(error, { depth: 9 })));
    file.on('change', () => {
      throw new Error(`cannot use ${first}, which is in ${text}`);
    });
    await file.start();
    await expect.poll(() => errors).toHaveLength(1);
    for (const hidden of [first, 'something else']) expect(errors.join()).not.toContain(hidden);
  });
});

test('a parsed token has to be one', async () => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'secret'));
  volume.publish({ login: '{"a":"no token"}' });
  await using file = new TokenFile(volume.path('login'), { parse: field('a') });
  await expect(file.get()).rejects.toMatchObject({ cause: { code: 'ERR_TOKEN_MALFORMED' } });
});

test('parse has to be a function', () => {
  const options = { parse: 'a' as unknown as TextParser };
  expect(() => new SecretFile('/a', options)).toThrow('option "parse" must be a function, got "a"');
  expect(() => new TokenFile('/a', options)).toThrow('option "parse" must be a function, got "a"');
});
