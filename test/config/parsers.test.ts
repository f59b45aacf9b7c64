import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import {
  ConfigLoader,
  dotenvParser,
  FileProvider,
  jsoncParser,
  jsonParser,
  tomlParser,
  VolumeProvider,
  yamlParser,
  type ConfigError,
  type ConfigParser,
} from 'resilient-watcher/config';
import dotenv from 'dotenv';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { PackageError } from 'resilient-watcher';
import { rounds } from '../support/rounds.js';
import { shownBy } from '../support/shown-by.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const BOM = '\uFEFF';

/** Stands in every bad text, and must stand in no message. */
const SECRET = 'hunter2';

async function parse(parser: ConfigParser, bytes: string | Buffer, maxBytes?: number): Promise<unknown> {
  const path = join(temporaryDirectory(), 'config');
  writeFileSync(path, bytes);
  return new FileProvider(path, { parser, maxBytes }).read();
}

test.each<[ConfigParser, string, unknown]>([
  [
    jsonParser,
    '{"a":{"b":[1,-2.5e3,true,null,"\\u00e9\\n"]},"c":{}}',
    { a: { b: [1, -2500, true, null, 'é\n'] }, c: {} },
  ],
  [
    yamlParser,
    'a: &x {b: [1, true, null]}\nc: *x\n1: one\n',
    { a: { b: [1, true, null] }, c: { b: [1, true, null] }, 1: 'one' },
  ],
  [
    tomlParser,
    'a.b = [1, 2.5]\nd = 1979-05-27T07:32:00Z\n[c]\n',
    { a: { b: [1, 2.5] }, d: '1979-05-27T07:32:00.000Z', c: {} },
  ],
  [
    dotenvParser,
    '# c\r\nexport A=1 # x\nB="two\nC=not a key"\n\nD=\nE: yes\nF=\'#\'\nG=a"b\n',
    { A: '1', B: 'two\nC=not a key', D: '', E: 'yes', F: '#', G: 'a"b' },
  ],
])('a parser (%j) reads its format, with and without a byte order mark', async (parser, text, values) => {
  expect(await parse(parser, text)).toEqual(values);
  expect(await parse(parser, BOM + text)).toEqual(values);
});

test.each([
  [
    'password: abc: def',
    '1:11: not valid YAML: a second ": " on one line; put a value that contains ": " in quotes',
  ],
  ['a: 1\n\tb: 2', '2:1: not valid YAML: a tab indents the line; use spaces'],
  ['a: @home', '1:4: not valid YAML: a value cannot begin with "@", "`" or "%"; put it in quotes'],
  [
    'a: {{ .Values.a }}',
    '1:5: not valid YAML: a key is a list, a map or an alias; put "{{ … }}" of a template in quotes',
  ],
  [
    'a: "C:\\data"',
    '1:7: not valid YAML: this "\\" escapes nothing; write "\\\\" in double quotes, or use single quotes',
  ],
  ['a: 1\nb', '2:1: not valid YAML: something is missing before this place: ": " after a key'],
  ['a: !env HOME', '1:4: not valid YAML: the tag is unknown'],
  ['a: 1\n---\na: 2', '2:1: not valid YAML: a second document begins here ("---"); a source has one'],
])('what is not YAML is told in words, with what to do about it: %j', async (text, message) => {
  await expect(parse(yamlParser, text)).rejects.toThrow(message);
});

test.each<[ConfigParser, ...string[]]>([
  [yamlParser, '# a: 1\n', '---\n', '--- # a: 1\n...\n', '%YAML 1.2\n---\n# a: 1', 'null', '~\n'],
  [tomlParser, '# a = 1\n'],
  [dotenvParser, '# A=1\n'],
  [jsoncParser, '// "a": 1', '/* { "a": 1 } */\n'],
])(
  'a text in which everything is commented out is an empty map, and so is an empty one: %j',
  async (parser, ...texts) => {
    for (const text of ['', BOM, `${BOM} \r\n\n`, ...texts]) {
      expect(await parse(parser, text), text).toEqual({});
    }
  },
);

test('a key in which everything is commented out does not keep the other keys of a volume from being used', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'limits.yaml'), '# max: 5\n');
  writeFileSync(join(directory, 'more.json5'), '// nothing\n');
  writeFileSync(join(directory, 'host'), 'db');
  const parsers = { yaml: yamlParser, json5: jsoncParser };
  expect(await new VolumeProvider(directory, { parsers }).read()).toEqual({
    limits: {},
    more: {},
    host: 'db',
  });
});

/** Each key is below the one before it. */
function staircase(levels: number): string {
  return Array.from({ length: levels }, (_, level) => `${' '.repeat(level)}a:\n`).join('');
}

/** What is wrong, the text, the code, and the place as `line:column`. */
const bad: [string, ConfigParser, string | Buffer, string, string?][] = [
  ...[jsonParser, yamlParser, tomlParser, dotenvParser].flatMap<(typeof bad)[number]>((parser) => [
    ['UTF-16', parser, Buffer.from(`${BOM}A=1`, 'utf16le'), 'ERR_CONFIG_PARSE'],
    ['UTF-16 without a mark', parser, Buffer.from('A=1', 'utf16le'), 'ERR_CONFIG_PARSE'],
    ['no UTF-8', parser, Buffer.from([0x41, 0x3d, 0xff]), 'ERR_CONFIG_PARSE'],
    ['too many bytes', parser, `A=${SECRET}`.repeat(20), 'ERR_CONFIG_TOO_LARGE'],
  ]),
  ['an empty file', jsonParser, '', 'ERR_CONFIG_PARSE', '1:1'],
  ['nothing but space and a mark', jsonParser, `${BOM} \n`, 'ERR_CONFIG_PARSE'],
  ['a parse error', jsonParser, `{"a": 1,\n "b": ${SECRET}}`, 'ERR_CONFIG_PARSE', '2:7'],
  ['an open string', jsonParser, `{"a": "${SECRET}\n"}`, 'ERR_CONFIG_PARSE', '1:7'],
  ['an integer that loses digits', jsonParser, '{"a":\n -9007199254740993}', 'ERR_CONFIG_PARSE', '2:2'],
  ['an integer that loses digits', yamlParser, 'b: 1\na: 9007199254740993', 'ERR_CONFIG_PARSE', '2:4'],
  ['a hexadecimal one', yamlParser, 'a: 0xFFFFFFFFFFFFFFFF', 'ERR_CONFIG_PARSE', '1:4'],
  ['an integer that loses digits', tomlParser, 'b = 1\na = 9007199254740993', 'ERR_CONFIG_PARSE', '2:5'],
  ['a trailing comma', jsonParser, '{"a": [1,]}', 'ERR_CONFIG_PARSE', '1:10'],
  ['text after the end', jsonParser, `{} ${SECRET}`, 'ERR_CONFIG_PARSE', '1:4'],
  ['a duplicate key', jsonParser, `{"a": {"b": "${SECRET}",\n"b": 2}}`, 'ERR_CONFIG_PARSE', '2:1'],
  ['an array at the top', jsonParser, `["${SECRET}"]`, 'ERR_CONFIG_PARSE'],
  ['__proto__', jsonParser, `{"a": [{"__proto__": "${SECRET}"}]}`, 'ERR_CONFIG_PARSE'],
  ['constructor', jsonParser, `{"constructor": {"x": "${SECRET}"}}`, 'ERR_CONFIG_PARSE'],
  ['prototype', jsonParser, `{"a": {"prototype": {}}}`, 'ERR_CONFIG_PARSE'],
  ['a duplicate __proto__', jsonParser, '{"__proto__":1,"__proto__":2}', 'ERR_CONFIG_PARSE', '1:2'],
  ['deep nesting', jsonParser, '{"a":'.repeat(100_000), 'ERR_CONFIG_PARSE', '1:1001'],
  ['a comment', jsonParser, '{"a": 1} // x', 'ERR_CONFIG_PARSE', '1:10'],
  ['a parse error', jsoncParser, `// c\n{"a": ${SECRET},}`, 'ERR_CONFIG_PARSE', '2:7'],
  ['a duplicate key', jsoncParser, `{"a": "${SECRET}",\n"a": 2,}`, 'ERR_CONFIG_PARSE', '2:1'],
  ['__proto__', jsoncParser, `{"a": [{"__proto__": "${SECRET}"}]}`, 'ERR_CONFIG_PARSE', '1:9'],
  ['deep nesting', jsoncParser, '[//\n'.repeat(100_000), 'ERR_CONFIG_PARSE', '201:1'],
  ['an integer that loses digits', jsoncParser, '{"a": 9007199254740993,}', 'ERR_CONFIG_PARSE', '1:7'],
  ['a merge key', yamlParser, `a: &a {x: ${SECRET}}\nb:\n  <<: *a`, 'ERR_CONFIG_PARSE', '3:3'],
  ['a merge key in brackets', yamlParser, `a: [{ <<: {x: ${SECRET}} }]`, 'ERR_CONFIG_PARSE', '1:7'],
  ['a number that is octal elsewhere', yamlParser, 'mode: 0644', 'ERR_CONFIG_PARSE', '1:7'],
  ['a number that loses its 0', yamlParser, 'zip:\n  - -08', 'ERR_CONFIG_PARSE', '2:5'],
  ['a number that is octal elsewhere', tomlParser, 'mode = 0644', 'ERR_CONFIG_PARSE', '1:8'],
  ['a number that is octal elsewhere', jsonParser, '{"mode": 0644}', 'ERR_CONFIG_PARSE', '1:11'],
  ['a parse error', yamlParser, `a: 1\nb: "${SECRET}`, 'ERR_CONFIG_PARSE', '2:12'],
  ['a value that is none', yamlParser, `a: @${SECRET}`, 'ERR_CONFIG_PARSE', '1:4'],
  ['deep nesting in brackets', yamlParser, '['.repeat(100_000), 'ERR_CONFIG_PARSE', '1:203'],
  ['deep nesting in braces', yamlParser, '{a: '.repeat(100_000), 'ERR_CONFIG_PARSE', '1:806'],
  ['deep nesting in dashes', yamlParser, '- '.repeat(100_000), 'ERR_CONFIG_PARSE', '1:404'],
  ['deep indentation', yamlParser, staircase(1_000), 'ERR_CONFIG_PARSE', '202:203'],
  ['a duplicate key', yamlParser, `a: ${SECRET}\na: 2`, 'ERR_CONFIG_PARSE', '2:1'],
  ['an unknown tag', yamlParser, `a: !vault ${SECRET}`, 'ERR_CONFIG_PARSE', '1:4'],
  ['an alias to nothing', yamlParser, `a: *${SECRET}`, 'ERR_CONFIG_PARSE'],
  ['aliases in a circle', yamlParser, 'a: &a [*a]', 'ERR_CONFIG_PARSE'],
  [
    'aliases that multiply',
    yamlParser,
    `a0: &a0 [x,x,x,x,x,x,x,x,x]\n${[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `a${n}: &a${n} [${`*a${n - 1},`.repeat(9)}]`).join('\n')}`,
    'ERR_CONFIG_PARSE',
  ],
  ['two documents', yamlParser, 'a: 1\n---\nb: 2', 'ERR_CONFIG_PARSE', '2:1'],
  ['a map as a key', yamlParser, `? {a: ${SECRET}}\n: b`, 'ERR_CONFIG_PARSE', '1:3'],
  ['a text at the top', yamlParser, SECRET, 'ERR_CONFIG_PARSE'],
  ['__proto__', yamlParser, `a:\n  __proto__: {x: ${SECRET}}`, 'ERR_CONFIG_PARSE'],
  ['bytes', yamlParser, 'a: !!binary aGk=', 'ERR_CONFIG_PARSE'],
  ['a set', yamlParser, 'a: !!set { x, y }', 'ERR_CONFIG_PARSE'],
  ['a parse error', tomlParser, `a = 1\nb = ${SECRET}`, 'ERR_CONFIG_PARSE', '2:5'],
  ['a duplicate key', tomlParser, `a = "${SECRET}"\na = 2`, 'ERR_CONFIG_PARSE', '2:1'],
  ['__proto__', tomlParser, `[__proto__]\nx = "${SECRET}"`, 'ERR_CONFIG_PARSE'],
  ['text after a quoted value', dotenvParser, `A=1\nB="x" ${SECRET}`, 'ERR_CONFIG_PARSE', '2:'],
  ['a quote that does not end', dotenvParser, `A=1\nB="${SECRET}`, 'ERR_CONFIG_PARSE', '2:'],
  ['quotes that end in another line', dotenvParser, `A='${SECRET}\nB='x`, 'ERR_CONFIG_PARSE', '1:'],
  ['a line without key', dotenvParser, `A=1\n${SECRET}\n`, 'ERR_CONFIG_PARSE', '2:'],
  ['a duplicate key', dotenvParser, `A=${SECRET}\nB=2\nA=3`, 'ERR_CONFIG_PARSE', '3:'],
  ['__proto__', dotenvParser, `A=1\n__proto__=${SECRET}`, 'ERR_CONFIG_PARSE'],
  ['constructor', dotenvParser, `constructor=${SECRET}`, 'ERR_CONFIG_PARSE'],
];

const named = bad.map(
  ([what, parser, text, code, place]) => [what, parser.name, parser, text, code, place] as const,
);

test.each(named)(
  '%s is refused in %s, and no value is quoted',
  async (what, _, parser, text, code, place) => {
    const limit = what === 'too many bytes' ? 100 : undefined;
    const error = (await parse(parser, text, limit).catch((reason: unknown) => reason)) as ConfigError;
    expect(error).toMatchObject({ name: 'ConfigError', code });
    expect(error.problems).toHaveLength(1);
    const [problem] = error.problems;
    if (place !== undefined) expect(`${problem?.line}:${problem?.column ?? ''}`).toBe(place);
    expect(`${error.stack}${JSON.stringify(error)}${String(error.cause)}`).not.toContain(SECRET);
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  },
);

test('the message of a custom parser is not quoted, its line and column are', async () => {
  const parser: ConfigParser = {
    name: 'mine',
    parse: (text) => {
      throw Object.assign(new Error(`bad: ${text}`), { line: 3, column: 7 });
    },
  };
  await expect(parse(parser, SECRET)).rejects.toMatchObject({
    problems: [
      {
        code: 'ERR_CONFIG_PARSE',
        line: 3,
        column: 7,
        message: expect.stringMatching(/[\\/]config:3:7: the mine parser failed$/) as string,
      },
    ],
  });
});

test('a parser that crashes is the cause, with its frames and without its message', async () => {
  const parser: ConfigParser = {
    name: 'mine',
    parse: function crashing(text) {
      throw new RangeError(`bad:\n    at ${text} (a.js:1:1)`);
    },
  };
  const error = (await parse(parser, SECRET).catch((reason: unknown) => reason)) as ConfigError;
  expect(error.cause).toMatchObject({ name: 'RangeError' });
  expect((error.cause as Error).stack).toContain('at Object.crashing');
  expect(shownBy(error)).not.toContain(SECRET);
});

test('what kept a package from being loaded is the cause of what load() rejects with', async () => {
  const dynamic = new Error('Dynamic require of "process" is not supported');
  const parser: ConfigParser = {
    name: 'mine',
    parse: () => {
      throw new PackageError('yaml', '2.6 or later', dynamic);
    },
  };
  const path = join(temporaryDirectory(), 'app.yaml');
  writeFileSync(path, 'a: 1');
  const provider = new FileProvider(path, { parser });
  await expect(new ConfigLoader({ sources: [{ provider }] }).load()).rejects.toMatchObject({
    code: 'ERR_CONFIG_INVALID',
    cause: { code: 'ERR_PACKAGE', cause: { message: dynamic.message } },
  });
});

/** https://yaml.org/type/merge.html */
const MERGES = `
center: &CENTER { x: 1, y: 2 }
left: &LEFT { x: 0, y: 2 }
big: &BIG { r: 10 }
small: &SMALL { r: 1 }
all:
  - { x: 1, y: 2, r: 10, label: l }
  - { <<: *CENTER, r: 10, label: l }
  - <<: [*CENTER, *BIG]
    label: l
  - <<: [*BIG, *LEFT, *SMALL]
    x: 1
    label: l
  - <<: *CENTER
    <<: *BIG
    label: l
  - { label: l, x: 1, <<: [*LEFT, *BIG] }
quoted: { "<<": 1 }
`;

test('the option `merge` of a provider and of yamlParser merges the merge keys of YAML, except quoted ones', async () => {
  const values = (await yamlParser.parse(MERGES, { merge: true })) as Record<string, unknown>;
  expect(values['all']).toEqual(Array(6).fill({ x: 1, y: 2, r: 10, label: 'l' }));
  expect(values['quoted']).toEqual({ '<<': 1 });
  const directory = temporaryDirectory();
  const path = join(directory, 'app.yaml');
  writeFileSync(path, MERGES);
  expect(await new FileProvider(path, { merge: true }).read()).toEqual(values);
  const volume = new VolumeProvider(directory, { merge: true, parsers: { yaml: yamlParser } });
  expect(await volume.read()).toEqual({ app: values });
  await expect(new FileProvider(path).read()).rejects.toThrow(/app\.yaml:8:7: the merge key "<<" .* "merge"/);
});

test.each([
  ['a text', 'a: { <<: x }'],
  ['a list of texts', 'a: { <<: [x] }'],
  ['an alias to nothing', 'a: { <<: *x }'],
  ['itself', 'a: &a { <<: *a }'],
])('a merge key with %s is refused', async (_, text) => {
  await expect(yamlParser.parse(text, { merge: true })).rejects.toMatchObject({ code: 'ERR_CONFIG_PARSE' });
});

test('merge keys that multiply are refused', async () => {
  const levels = Array.from({ length: 30 }, (_, n) => `a${n + 1}: &a${n + 1} { <<: [*a${n}, *a${n}] }`);
  await expect(yamlParser.parse(`a0: &a0 { x: 1 }\n${levels.join('\n')}`, { merge: true })).rejects.toThrow(
    'more than 1000000 values',
  );
  const large = `a: &a { b: [${'0,'.repeat(20_000)}] }\nc:\n${'  - { <<: *a }\n'.repeat(100)}`;
  await expect(yamlParser.parse(large, { merge: true })).rejects.toThrow('more than 1000000 values');
});

test('a number of YAML 1.2 is read, also in octal, and words of YAML 1.1 are text', async () => {
  expect(
    await parse(yamlParser, 'a: 0\nb: 0o17\nc: 0x1F\nd: -0.5\ne: "007"\nf: off\ng: 1_000\nh: 12:30\n09: x'),
  ).toEqual({
    a: 0,
    b: 15,
    c: 31,
    d: -0.5,
    e: '007',
    f: 'off',
    g: '1_000',
    h: '12:30',
    '09': 'x',
  });
});

test('YAML has an anchor that is set again, an anchor at a key, a date, and the pairs of YAML 1.1', async () => {
  const text = 'a: &x 1\nb: [&x 2, *x]\n? &k key\n: !!timestamp 2001-12-14\np: !!pairs [q: 1, q: 2]\nn:';
  expect(await parse(yamlParser, text)).toEqual({
    a: 1,
    b: [2, 2],
    key: '2001-12-14T00:00:00.000Z',
    p: [{ q: 1 }, { q: 2 }],
    n: null,
  });
});

test('a "#" that ends an unquoted value without white space before it is a warning', async () => {
  const path = join(temporaryDirectory(), '.env');
  writeFileSync(path, `A=x # c\nPASS=p@ss#${SECRET}\r\nB='a#b' # c\nC="a"#c\nD=#x\n# E=a#b\nexport F=\t#x\n`);
  const provider = new FileProvider(path);
  expect(await provider.read()).toEqual({ A: 'x', PASS: 'p@ss', B: 'a#b', C: 'a', D: '', F: '' });
  const says = 'its value ends before the "#", as in dotenv; put it in quotes if the "#" belongs to it';
  expect(provider.warnings).toEqual([
    { code: 'comment', message: `${path}:2:10: PASS: ${says}` },
    { code: 'comment', message: `${path}:5:3: D: ${says}` },
  ]);
  writeFileSync(path, Array.from({ length: 1_000 }, (_, i) => `K${i}=a#b`).join('\n'));
  await provider.read();
  expect(provider.warnings.length, 'those that a person reads').toBeLessThanOrEqual(100);
  writeFileSync(path, 'A=x');
  await provider.read();
  expect(provider.warnings).toEqual([]);
});

test.each<[string, ConfigParser, string, string[], string]>([
  ['JSON', jsonParser, '{\n "a": [1,\n  {"b": 2}]}', ['a', '1', 'b'], '3:9'],
  ['JSONC', jsoncParser, '{\n // c\n "a": 1,\n}', ['a'], '3:7'],
  ['YAML', yamlParser, 'a:\n  - 1\n  - b: 2', ['a', '1', 'b'], '3:8'],
  ['YAML behind an alias', yamlParser, 'a: &a\n  b: 2\nc: *a', ['c', 'b'], '2:6'],
  [
    'YAML behind merge keys',
    yamlParser,
    'a: &a\n  b: 2\nc: &c {<<: *a}\nd: {<<: [{e: 1}, *c]}',
    ['d', 'b'],
    '2:6',
  ],
  ['dotenv', dotenvParser, 'A=1\r\nB="x\ny"\nC=2', ['C'], '4:'],
])('a parser knows where a value stands in %s', async (_, parser, text, path, place) => {
  const { line, column } = (await parser.placeOf?.(text, path)) ?? {};
  expect(`${line}:${column ?? ''}`).toBe(place);
  expect(await parser.placeOf?.(text, ['nothing', '7'])).toBeUndefined();
});

test('an error about a missing package names it, with the reason and the command to run', async () => {
  const name = ['a-package', 'that-nobody-has'].join('-');
  await expect(
    import(name).catch((cause: unknown) => {
      throw new PackageError('yaml', '2.6 or later', cause);
    }),
  ).rejects.toMatchObject({
    code: 'ERR_PACKAGE',
    message: 'the package "yaml" (2.6 or later) is required but not installed; run: npm install yaml',
    cause: { code: 'ERR_MODULE_NOT_FOUND' },
  });
});

test('an error about a package that this Node.js cannot load does not send the reader in a circle', () => {
  const { message } = new PackageError('undici', '7 or later', new TypeError('It is too new'));
  expect(message).toBe(
    `the package "undici" (7 or later) is required but cannot be loaded (It is too new): this version of it may need a newer Node.js than ${process.versions.node}, so install an older one; if it is damaged, run: npm install undici`,
  );
});

const MIB = 2 ** 20;
/** A quadratic parser takes minutes for a MiB of keys, so that the test runs out of time. */
const KEYS_BYTES = rounds(MIB / 8, MIB);

/** So much, ms, may be anything: the collection of garbage, code that is compiled. */
const NOISE_MS = 50;

/**
 * Eight times as much takes about eight times as much processor time, and not 64 times. Unlike the time on the clock, that
 * hardly depends on what else the machine does.
 */
async function expectLinear(size: number, work: (size: number) => unknown): Promise<void> {
  const cost = async (part: number): Promise<number> => {
    const before = process.cpuUsage();
    await work(part);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  };
  const eighth = await cost(size / 8);
  expect(await cost(size)).toBeLessThan(32 * Math.max(eighth, NOISE_MS));
}

/** A text of `bytes` bytes made of numbered lines. */
function lines(bytes: number, line: (n: number) => string): string {
  const parts: string[] = [];
  for (let length = 0, n = 0; length < bytes; n += 1) length += parts[parts.push(line(n)) - 1]?.length ?? 0;
  return parts.join('').slice(0, bytes);
}

test.each<[string, ConfigParser, (bytes: number) => string]>([
  ['dotenv', dotenvParser, (bytes) => lines(bytes - 8, (n) => `K${n}=\n`).replace(/\n[^\n]*$/, '\n')],
  ['YAML', yamlParser, (bytes) => lines(bytes - 8, (n) => `k${n}:\n`).replace(/\n[^\n]*$/, '\n')],
  ['TOML', tomlParser, (bytes) => lines(bytes - 8, (n) => `k${n}=1\n`).replace(/\n[^\n]*$/, '\n')],
  ['JSON', jsonParser, (bytes) => `{"k":0${lines(bytes - 32, (n) => `,"k${n}":1`).replace(/,[^,]*$/, '')}}`],
])(`${KEYS_BYTES / 1_024} KiB of keys in %s are read in linear time`, async (_, parser, textOf) => {
  await expectLinear(KEYS_BYTES, async (bytes) => {
    const values = (await parse(parser, textOf(bytes))) as Record<string, unknown>;
    expect(Object.keys(values).length).toBeGreaterThan(bytes / 14);
  });
});

const piece = fc.constantFrom(
  ...['A', 'B1', '=', ': ', ' ', '\n', '\r\n', '"', "'", '`', '#', '\\n', '\\"', 'export ', 'x', 'ü', '\t'],
);

test('what the dotenv parser accepts, the package reads in the same way', () => {
  const assignments = fc.array(fc.array(piece, { maxLength: 8 }), { maxLength: 4 });
  fc.assert(
    fc.property(assignments, (lines) => {
      const text = lines.map((parts, index) => `K${index}=${parts.join('')}\n`).join('');
      let values: unknown;
      try {
        values = dotenvParser.parse(text);
      } catch {
        return;
      }
      expect(values).toEqual(dotenv.parse(text));
    }),
    { numRuns: 2_000 },
  );
});

test('an integer that loses digits, and a number that would be infinite, are refused, and numbers that lose none are read', async () => {
  for (const [parser, text] of [
    [jsonParser, '{"a": 9007199254740993}'],
    [yamlParser, 'a: 9007199254740993'],
    [tomlParser, 'a = 9007199254740993'],
  ] as const) {
    await expect(parse(parser, text)).rejects.toThrow(/: an integer beyond .* write it as a string/);
  }
  for (const [parser, text] of [
    [jsonParser, '{"a": 1e400}'],
    [yamlParser, 'a: -1e400'],
  ] as const) {
    await expect(parse(parser, text)).rejects.toThrow(/a number beyond .* is infinite; write it as a string/);
  }
  const numbers = { a: 9007199254740991, b: 1e30, c: -0.5 };
  expect(await parse(jsonParser, JSON.stringify(numbers))).toEqual(numbers);
  expect(await parse(yamlParser, 'a: 9007199254740991\nb: 1e30\nc: -0.5')).toEqual(numbers);
});

test('a YAML document may have 1 000 aliases of one anchor, unless they make it enormous', async () => {
  const aliases = (anchor: string) => `a: &a ${anchor}\nb:\n${'- *a\n'.repeat(1_000)}`;
  expect(await parse(yamlParser, aliases('{x: 1}'))).toMatchObject({ b: Array(1_000).fill({ x: 1 }) });
  await expect(parse(yamlParser, aliases(`[${'0,'.repeat(2_000)}]`))).rejects.toThrow('1000000 values');
});

test('a YAML document with too many aliases is refused', async () => {
  const many = `a:\n${lines(MIB / 16, (n) => `- &a${n} x\n- *a${n}\n`).replace(/\n[^\n]*\n[^\n]*$/, '\n')}`;
  await expect(parse(yamlParser, many)).rejects.toThrow('more than 1000 aliases');
});

test('a variable nested deeper than any configuration is refused, and named', async () => {
  const env = { [`APP_${'A__'.repeat(20_000)}A`]: 'x' };
  const loader = new ConfigLoader({ sources: [{ env: { prefix: 'APP_', env } }] });
  await expect(loader.load()).rejects.toThrow(/APP_A__A__.*200 levels/);
});

const LARGE = rounds(1 / 4, 8) * MIB;

test.each([
  ['a string', `{"a": "${'x'.repeat(LARGE)}"}`],
  ['a string of escapes', `{"a": "${'\\n'.repeat(LARGE / 2)}"}`],
  ['white space', `{"a":${' '.repeat(LARGE)}1}`],
  ['an array', `{"a": [${'0,'.repeat(LARGE / 4)}0]}`],
])(`${LARGE / MIB} MiB of JSON in %s does not exhaust the stack`, async (_, text) => {
  expect(await parse(jsonParser, text, 2 * LARGE)).toHaveProperty('a');
});

test.each([
  ['an unknown escape sequence', String.raw`{"a": "\q"}`, '1:7'],
  ['half an escape sequence', String.raw`{"a": "\u00"}`, '1:7'],
  ['a backslash at the end', '{"a": "x\\', '1:7'],
  ['a tab in a string', '{"a": "\t"}', '1:7'],
])('%s in JSON is refused where the string begins', async (_, text, place) => {
  const error = (await parse(jsonParser, text).catch((reason: unknown) => reason)) as ConfigError;
  expect(error.problems.map(({ line, column }) => `${line}:${column}`)).toEqual([place]);
});

test.each([
  ['app.json', '{"n":1}'],
  ['app.jsonc', '{\n  // one\n  "n": 1, /* more */\n}'],
  ['app.yaml', 'n: 1'],
  ['app.YML', 'n: 1'],
  ['app.toml', 'n = 1'],
])('without a parser the extension of %s decides', async (name, text) => {
  const path = join(temporaryDirectory(), name);
  writeFileSync(path, text);
  expect(await new FileProvider(path).read()).toEqual({ n: 1 });
});

test.each(['.env', '.env.local', 'app.env'])('without a parser %s is a dotenv file', async (name) => {
  const path = join(temporaryDirectory(), name);
  writeFileSync(path, 'N=1');
  expect(await new FileProvider(path).read()).toEqual({ N: '1' });
});

test('without a parser and without a known extension the error says what to pass', async () => {
  const path = join(temporaryDirectory(), 'config');
  writeFileSync(path, '{}');
  await expect(new FileProvider(path).read()).rejects.toThrow(
    /config: pass the option "parser"; only \.json, \.jsonc, \.yaml, /,
  );
});

test.each<[string, string]>([
  ['{"a": 1', '1:8: not valid JSON: close brace expected'],
  ['[1,\n2', '2:2: not valid JSON: close bracket expected'],
  ['{"a" 1}', '1:6: not valid JSON: colon expected'],
  ['{"a": 1 "b": 2}', '1:9: not valid JSON: comma expected'],
  ['{"a": }', '1:7: not valid JSON: value expected'],
  ['{"a": 1,}', '1:9: not valid JSON: property name expected'],
  ['{a: 1}', '1:2: not valid JSON: property name expected'],
  ['{"a": tru}', '1:7: not valid JSON: invalid symbol'],
  ['{} {}', '1:4: not valid JSON: end of file expected'],
  ['{ // text\n}', '1:3: not valid JSON: invalid comment token'],
])('%j is refused in JSON with the place and what is wrong', async (text, message) => {
  const error = await parse(jsonParser, text).catch((reason: unknown) => reason);
  expect((error as Error).message).toContain(message);
});

test('a comment that has no end is refused in JSONC where it begins', async () => {
  await expect(parse(jsoncParser, '{\n /* text')).rejects.toThrow(
    '2:2: not valid JSON: unexpected end of comment',
  );
});
