/** Validators, the values they return, and the values that their messages must not show. */

import { BlockList } from 'node:net';

import { type } from 'arktype';
import { healthOf } from 'resilient-watcher';
import {
  ConfigError,
  ConfigLoader,
  jsonParser,
  type ConfigMap,
  type ConfigValidator,
  type StandardSchema,
} from 'resilient-watcher/config';
import * as v from 'valibot';
import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import { z as z3 } from 'zod/v3';

import { ConfigScene } from '../support/config-scene.js';

const SECRET = 'hunter2';

test.each<[string, ConfigValidator<unknown>]>([
  ['zod', z.object({ db: z.object({ port: z.number(), host: z.string() }) })],
  ['valibot', v.object({ db: v.object({ port: v.number(), host: v.string() }) })],
  ['arktype', type({ db: { port: 'number', host: 'string' } })],
  [
    'a function that throws what it refuses',
    (values) => z.object({ db: z.object({ port: z.number(), host: z.string() }) }).parse(values),
  ],
])('%s validates, its problems bear path and source but not the value', async (_, validate) => {
  const scene = new ConfigScene();
  scene.write('db.json', { db: { port: 1 } });
  const loader = scene.loader({
    sources: [{ values: { db: { host: 'a' } } }, { provider: scene.file('db.json') }],
    validate,
  });
  expect(await scene.load(loader)).toEqual({ db: { port: 1, host: 'a' } });

  scene.write('db.json', { db: { port: `pass-${SECRET}` } });
  await scene.pass();
  expect(scene.rejections).toMatchObject([
    {
      sources: [
        { name: scene.path('db.json'), digest: expect.stringMatching(/^sha256:[\da-f]{64}$/) as string },
      ],
      problems: [{ code: 'ERR_CONFIG_SCHEMA', source: scene.path('db.json'), path: ['db', 'port'] }],
    },
  ]);
  expect(JSON.stringify([scene.rejections, loader.status()])).not.toContain(SECRET);
  expect(loader.current).toEqual({ db: { port: 1, host: 'a' } });
});

test('the configuration has the type of what the schema accepts', () => {
  const sources = [{ values: {} }];
  expectTypeOf(new ConfigLoader({ sources, validate: type({ port: 'number' }) }).current).toEqualTypeOf<
    { port: number } | undefined
  >();
  const shape = z.object({ port: z.number() });
  expectTypeOf(new ConfigLoader({ sources, validate: shape }).current).toEqualTypeOf<
    { port: number } | undefined
  >();
  expectTypeOf(new ConfigLoader({ sources, validate: () => ({ port: 1 }) }).current).toEqualTypeOf<
    { port: number } | undefined
  >();
  expectTypeOf(new ConfigLoader({ sources }).current).toEqualTypeOf<ConfigMap | undefined>();
});

test.each<[string, ConfigValidator<unknown>]>([
  // Those of zod 4 cannot be written as a JSON Schema, because of the date.
  ['enum of zod', z.object({ level: z.enum(['info', 'warn']), at: z.date().optional() })],
  ['literals of zod', z.object({ level: z.literal(['info', 'warn']), at: z.date().optional() })],
  [
    'union of zod',
    z.object({ level: z.union([z.literal('info'), z.literal('warn')]), at: z.date().optional() }),
  ],
  ['enum of zod 3', z3.object({ level: z3.enum(['info', 'warn']) })],
  ['union of zod 3', z3.object({ level: z3.union([z3.literal('info'), z3.literal('warn')]) })],
  ['picklist of valibot', v.object({ level: v.picklist(['info', 'warn']) })],
  ['union of valibot', v.object({ level: v.union([v.literal('info'), v.literal('warn')]) })],
  // As before 2.1.28, which had no JSON Schema.
  [
    'union of arktype',
    (() => {
      const { version, vendor, validate } = type({ level: '"info" | "warn"' })['~standard'];
      return { '~standard': { version, vendor, validate } };
    })(),
  ],
  [
    'function that throws an error of zod',
    (values) => z.object({ level: z.enum(['info', 'warn']) }).parse(values),
  ],
])('a problem lists the values that a %s allows, and not the one that it refuses', async (_, validate) => {
  const loader = new ConfigLoader({ sources: [{ values: { level: 'hunter22' } }], validate });
  const error = (await loader.load().catch((reason: unknown) => reason)) as ConfigError;
  expect(error.problems.map(({ message }) => message)).toEqual([
    'values: level: expected one of "info", "warn"',
  ]);
  expect(error.message).not.toContain('hunter22');
});

async function messagesFrom(values: ConfigMap, validate: ConfigValidator<unknown>): Promise<string[]> {
  const loader = new ConfigLoader({ sources: [{ values }], validate });
  const { problems } = (await loader.load().catch((reason: unknown) => reason)) as ConfigError;
  return problems.map(({ message }) => message);
}

/** As a validator that has none. */
function withoutJsonSchema(schema: z.ZodType): StandardSchema<unknown> {
  const { version, vendor, validate } = schema['~standard'];
  return { '~standard': { version, vendor, validate } };
}

test.each<[string, ConfigValidator<unknown>, string[]]>([
  [
    'zod',
    z.object({ db: z.object({ port: z.number() }), level: z.enum(['info', 'warn']) }),
    ['db: missing; expected object', 'level: missing; expected one of "info", "warn"'],
  ],
  [
    'zod without a JSON Schema',
    withoutJsonSchema(z.object({ port: z.number() })),
    ['port: missing; expected number'],
  ],
  ['zod 3', z3.object({ port: z3.number() }), ['port: missing; expected number']],
  ['valibot', v.object({ port: v.number() }), ['port: missing']],
  ['valibot, strict', v.strictObject({ port: v.number() }), ['port: missing']],
  ['arktype', type({ port: 'number' }), ['port: missing; expected a number']],
])('a key that no source has is missing: %s', async (_, validate, messages) => {
  expect(await messagesFrom({}, validate)).toEqual(messages.map((message) => `validate: ${message}`));
});

test.each<[string, ConfigValidator<unknown>]>([
  ['zod', z.object({ db: z.strictObject({ port: z.number() }) })],
  ['zod without a JSON Schema', withoutJsonSchema(z.object({ db: z.strictObject({ port: z.number() }) }))],
  ['zod 3', z3.object({ db: z3.object({ port: z3.number() }).strict() })],
  ['valibot', v.object({ db: v.strictObject({ port: v.number() }) })],
])('a key that the schema does not have is named: %s', async (_, validate) => {
  const messages = await messagesFrom({ db: { port: 1, prot: 2 } }, validate);
  expect(messages).toEqual(['values: db.prot: the schema has no such key']);
});

test('each of several keys that the schema does not have is a problem', async () => {
  expect(await messagesFrom({ a: 1, b: 2 }, z.strictObject({}))).toEqual([
    'values: a: the schema has no such key',
    'values: b: the schema has no such key',
  ]);
});

test('a problem names the variants of valibot, and the formats of zod', async () => {
  const kinds = [v.object({ kind: v.literal('a') }), v.object({ kind: v.literal('b') })] as const;
  const variant = v.object({ db: v.variant('kind', kinds) });
  expect(await messagesFrom({ db: { kind: 'c' } }, variant)).toEqual([
    'values: db.kind: expected one of "a", "b"',
  ]);
  expect(await messagesFrom({ db: 5 }, variant)).toEqual(['values: db: refused by the rule variant']);
  const formats = z.object({ mail: z.email(), name: z.string().regex(/^b/) });
  expect(await messagesFrom({ mail: 'a', name: 'a' }, formats)).toEqual([
    'values: mail: refused by the rule invalid_format (email)',
    'values: name: refused by the rule invalid_format (regex)',
  ]);
  expect(await messagesFrom({ mail: 'a' }, z3.object({ mail: z3.string().email() }))).toEqual([
    'values: mail: refused by the rule invalid_string (email)',
  ]);
});

test('the problems of a ConfigError that a function throws are shown, each at its place', async () => {
  const scene = new ConfigScene();
  scene.write('app.json', '{\n  "log": { "level": "loud" }\n}');
  const problems = [
    { code: 'ERR_CONFIG_SCHEMA', source: '', path: ['log', 'level'], message: 'must be info or warn' },
    { code: 'ERR_CONFIG_SCHEMA', source: '', path: ['port'], message: 'must be a number' },
    { code: 'ERR_CONFIG_SCHEMA', source: '', message: 'must be right' },
  ] as const;
  const validate = (): never => {
    throw new ConfigError('ERR_CONFIG_SCHEMA', 'the schema refuses it', { problems });
  };
  const loader = scene.loader({ sources: [{ provider: scene.file('app.json') }], validate });
  const error = (await scene.load(loader).catch((reason: unknown) => reason)) as ConfigError;
  expect(error.problems).toMatchObject([
    {
      source: scene.path('app.json'),
      message: `${scene.path('app.json')}:2:21: log.level: must be info or warn`,
      line: 2,
      column: 21,
    },
    { source: 'validate', message: 'validate: port: must be a number' },
    { source: 'validate', message: 'validate: must be right' },
  ]);
});

test('a problem names the line on which a value stands now, even if only the lines have changed', async () => {
  const scene = new ConfigScene();
  scene.write('a.json', '{"n":1}');
  scene.write('b.json', { max: 1 });
  const loader = scene.loader<ConfigMap>({
    sources: ['a.json', 'b.json'].map((name) => ({ provider: scene.file(name) })),
    validate: (values) => {
      const { n, max } = values as { readonly n: number; readonly max: number };
      if (n <= max) return { n, max };
      throw Object.assign(new Error(), { issues: [{ message: 'm', path: ['n'] }] });
    },
  });
  await scene.load(loader);
  for (const lines of [1, 2]) {
    scene.write('a.json', `${'\n'.repeat(lines)}{"n":1}`);
    await scene.pass();
    scene.write('b.json', { max: 0, lines });
    await scene.pass();
    expect(scene.rejections.at(-1)?.problems).toMatchObject([
      { source: scene.path('a.json'), line: lines + 1 },
    ]);
  }
});

test('a probe says why nothing was loaded', async () => {
  const validate = z.object({ port: z.number() });
  const loader = new ConfigLoader({ sources: [{ values: {} }], validate });
  const reasonOf = (): unknown => healthOf(loader).checks[0]?.reason;
  expect(reasonOf()).toBe('it is idle');
  await expect(loader.load()).rejects.toThrow(ConfigError);
  expect(reasonOf()).toBe(
    'it is not running: The configuration cannot be used: validate: port: missing; expected number',
  );
});

test('a problem of a union lists no values of a part, or of another type', async () => {
  const kind = z.union([z.object({ type: z.literal('a') }), z.object({ type: z.literal('b') })]);
  const parts = z.object({ kind, at: z.date().optional(), port: z.union([z.literal('auto'), z.number()]) });
  const values = { kind: { type: 'x' }, port: 'x' };
  const loader = new ConfigLoader({ sources: [{ values }], validate: parts });
  const error = (await loader.load().catch((reason: unknown) => reason)) as ConfigError;
  expect(error.problems.map(({ message }) => message)).toEqual([
    'values: kind: refused by the rule invalid_union',
    'values: port: refused by the rule invalid_union',
  ]);
});

test('a problem says the expected type, the rule, or what its function says in a ConfigError', async () => {
  const messagesOf = async (validate: ConfigValidator<unknown>): Promise<string[]> => {
    const loader = new ConfigLoader({
      sources: [{ values: { port: 'x', level: 'debug', pin: 9 } }],
      validate,
    });
    const { problems } = (await loader.load().catch((reason: unknown) => reason)) as ConfigError;
    return problems.map(({ message }) => message);
  };
  const level = z.enum(['info', 'warn']);
  expect(await messagesOf(z.object({ port: z.number(), level, pin: z.number().max(5) }))).toEqual([
    'values: port: expected number',
    'values: level: expected one of "info", "warn"',
    'values: pin: refused by the rule too_big (5)',
  ]);
  const ofValibot = {
    port: v.number(),
    level: v.picklist(['info', 'warn']),
    pin: v.pipe(v.number(), v.maxValue(5)),
  };
  expect(await messagesOf(v.object(ofValibot))).toEqual([
    'values: port: expected number',
    'values: level: expected one of "info", "warn"',
    'values: pin: refused by the rule max_value (5)',
  ]);
  expect(await messagesOf(type({ port: 'number', level: '"info" | "warn"', pin: 'number <= 5' }))).toEqual([
    'values: level: expected one of "info", "warn"',
    'values: pin: refused by the rule max',
    'values: port: expected a number',
  ]);
  const own = (): never => {
    throw new ConfigError('ERR_CONFIG_SCHEMA', 'the pin must be below 5');
  };
  expect(await messagesOf(own)).toEqual(['validate: the pin must be below 5']);
});

test.each<[string, unknown]>([
  ['no options', undefined],
  ['no sources', { sources: [] }],
  ['a source of no kind', { sources: [{ file: '/etc/x' }] }],
  ['a provider that cannot be read', { sources: [{ provider: {} }] }],
  ['a parser beside its provider', { sources: [{ provider: { read: () => ({}) }, parser: jsonParser }] }],
  ['a provider without a name', { sources: [{ provider: { read: () => ({}) } }] }],
  ['a schema that is none', { sources: [{ values: {} }], validate: {} }],
  ['an unknown option', { sources: [{ values: {} }], settle: 1 }],
])('%s is a TypeError', (_, options) => {
  expect(() => new ConfigLoader(options as never)).toThrow(TypeError);
});

test('a JSON Schema is refused with what it needs', () => {
  const validate = { type: 'object' } as never;
  expect(() => new ConfigLoader({ sources: [{ values: {} }], validate })).toThrow(
    'option "validate" must be a function or a Standard Schema (a JSON Schema needs a function that applies it)',
  );
});

const UNSAID = 'refused; to say why, throw a ConfigError';

const odd: [string, unknown, { path?: string[]; message: string }][] = [
  ['an issue that is null', { issues: [null] }, { path: [], message: UNSAID }],
  ['a path that is a number', { issues: [{ message: 'm', path: 5 }] }, { path: [], message: UNSAID }],
  [
    'a number in a path',
    { issues: [{ message: 'm', path: ['list', 0] }] },
    { path: ['list', '0'], message: UNSAID },
  ],
  ['null in a path', { issues: [{ message: 'm', path: [null, {}] }] }, { path: ['?', '?'], message: UNSAID }],
  ['a message that is none', { issues: [{ message: 7 }] }, { path: [], message: UNSAID }],
  ['a text', 'not good', { path: [], message: UNSAID }],
  ['undefined', undefined, { path: [], message: UNSAID }],
  ['a symbol', Symbol('s'), { path: [], message: UNSAID }],
  ['an object without a prototype', Object.create(null), { path: [], message: UNSAID }],
  [
    'a getter that throws',
    Object.defineProperty({}, 'issues', {
      get: () => {
        throw new Error('getter');
      },
    }),
    { path: [], message: UNSAID },
  ],
];

test.each(odd)('a validator that throws %s has refused the update', async (_, thrown, problem) => {
  const scene = new ConfigScene();
  scene.write('a', { list: [] });
  let refuse = false;
  const loader = scene.loader<ConfigMap>({
    sources: [{ provider: scene.file('a') }],
    validate: (values) => {
      if (refuse) throw thrown;
      return values as ConfigMap;
    },
  });
  await scene.load(loader);
  refuse = true;
  scene.write('a', { list: [1] });
  await scene.pass();
  const { message, ...rest } = problem;
  expect(scene.rejections.map(({ problems }) => problems)).toMatchObject([
    [{ code: 'ERR_CONFIG_SCHEMA', ...rest, message: expect.stringContaining(`: ${message}`) as string }],
  ]);
  expect(scene.errors).toEqual([]);
});

test.each<[string, unknown, string]>([
  ['a schema that returns nothing', schemaOf(undefined), 'returned undefined'],
  ['a schema that returns no value', schemaOf({}), 'returned undefined'],
  ['a transform that returns nothing', z.object({}).transform(() => undefined), 'returned undefined'],
  ['a function that returns nothing', () => undefined, 'returned undefined'],
  ['a schema with an empty list of issues', schemaOf({ issues: [] }), UNSAID],
])('%s has refused the update', async (_, validate, message) => {
  const scene = new ConfigScene();
  const loader = scene.loader<ConfigMap>({ sources: [{ values: {} }], validate: validate as never });
  await expect(scene.load(loader)).rejects.toThrow(message);
});

/** A schema that returns this for all values. */
function schemaOf(result: unknown): unknown {
  return { '~standard': { version: 1, vendor: 'none', validate: () => result } };
}

test('a configuration is frozen at every level, even if its schema freezes only the top', async () => {
  const scene = new ConfigScene();
  const loader = scene.loader({
    sources: [{ values: { db: { ports: [1] } } }],
    validate: z.object({ db: z.object({ ports: z.array(z.number()) }) }).readonly(),
  });
  const { db } = await scene.load(loader);
  expect(() => db.ports.push(2)).toThrow(TypeError);
  expect(() => (db.ports = [])).toThrow(TypeError);
});

test('a validator that changes what it is given changes no source', async () => {
  const scene = new ConfigScene();
  scene.write('a.json', { n: 1 });
  const loader = scene.loader({
    sources: [{ values: { hosts: ['a'] } }, { provider: scene.file('a.json') }],
    validate: (values) => {
      const { n, hosts } = values as { readonly n: number; readonly hosts: string[] };
      hosts.push('fallback');
      return { n, hosts };
    },
  });
  await scene.load(loader);
  scene.write('a.json', { n: 2 });
  await scene.pass();
  expect(loader.current).toEqual({ n: 2, hosts: ['a', 'fallback'] });
});

test('a hundred of thousands of issues are reported', async () => {
  const scene = new ConfigScene();
  const list = Array.from({ length: 20_000 }, (_, n) => `value${n}`);
  const loader = scene.loader<unknown>({
    sources: [{ values: { list } }],
    validate: z.object({ list: z.array(z.number()) }),
  });
  const error = (await scene.load(loader).catch((reason: unknown) => reason)) as ConfigError;
  expect(error.problems).toHaveLength(100);
  expect(error.problems.at(-1)?.message).toBe('19901 more problems');
});

test('the status of a source that the schema refuses says why, until its values are accepted', async () => {
  const scene = new ConfigScene();
  scene.write('db.json', { port: 1 });
  const validate = z.object({ port: z.number() });
  const loader = scene.loader({ sources: [{ values: {} }, { provider: scene.file('db.json') }], validate });
  await scene.load(loader);
  scene.write('db.json', { port: 'one' });
  await scene.pass();
  const source = scene.path('db.json');
  const problem = { code: 'ERR_CONFIG_SCHEMA', source, path: ['port'] };
  expect(loader.status().sources).toMatchObject([
    { state: 'current', problems: [] },
    { state: 'rejected', problems: [problem] },
  ]);
  scene.write('db.json', '{');
  await scene.pass();
  expect(loader.status().sources[1]).toMatchObject({ problems: [{ code: 'ERR_CONFIG_PARSE' }] });
  scene.write('db.json', { port: 2 });
  await scene.pass();
  expect(loader.status().sources[1]).toMatchObject({ state: 'current', problems: [] });
});

test('a source that another one makes valid has no problem left in the status', async () => {
  const scene = new ConfigScene();
  scene.write('use.json', { used: 1 });
  scene.write('most.json', { most: 1 });
  const loader = scene.loader({
    sources: [{ provider: scene.file('use.json') }, { provider: scene.file('most.json') }],
    validate: z
      .object({ used: z.number(), most: z.number() })
      .refine(({ used, most }) => used <= most, { path: ['used'] }),
  });
  await scene.load(loader);
  scene.write('use.json', { used: 2 });
  await scene.pass();
  expect(loader.status().sources[0]).toMatchObject({ state: 'rejected', problems: [{ path: ['used'] }] });
  scene.write('most.json', { most: 2 });
  await scene.pass();
  expect(loader.current).toEqual({ used: 2, most: 2 });
  expect(loader.status().sources[0]).toMatchObject({ state: 'current', problems: [] });
});

test.each<[string, (text: string) => unknown, (value: never) => unknown]>([
  ['a URL', (text) => new URL(`https://${text}`), ({ host }: URL) => host],
  [
    'URLSearchParams',
    (text) => new URLSearchParams({ text }),
    (params: URLSearchParams) => params.get('text'),
  ],
  ['Headers', (text) => new Headers({ text }), (headers: Headers) => headers.get('text')],
  [
    'a BlockList',
    (text) => {
      const list = new BlockList();
      list.addAddress(`10.0.0.${text.at(-1)}`);
      return list;
    },
    (list: BlockList) => `host-${list.check('10.0.0.2') ? 2 : 1}`,
  ],
  ['an instance with a private field', (text) => new Hidden(text), (hidden: Hidden) => hidden.text],
])('an update of %s is a change', async (_, make, read) => {
  const scene = new ConfigScene();
  scene.write('a', { text: 'host-1' });
  const loader = scene.loader<{ readonly value: unknown; readonly at: Date }>({
    sources: [{ provider: scene.file('a') }],
    validate: (values) => ({ value: make((values as { text: string }).text), at: new Date(0) }),
  });
  await scene.load(loader);
  scene.write('a', { text: 'host-2' });
  await scene.pass();
  expect(read(loader.current?.value as never)).toBe('host-2');
  expect(scene.changes).toEqual([['value']]);
});

class Hidden {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get text(): string {
    return this.#text;
  }
}
