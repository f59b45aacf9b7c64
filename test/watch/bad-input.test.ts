import { pathToFileURL } from 'node:url';

import { ResilientWatcher } from 'resilient-watcher';
import { expect, test } from 'vitest';

test.each([
  [
    'an empty path',
    '',
    TypeError,
    'path must be a non-empty string without NUL bytes or a file: URL, got ""',
  ],
  ['a NUL byte', 'a\0b', TypeError, 'path must be a non-empty string without NUL bytes'],
  ['a number', 7, TypeError, 'path must be a non-empty string without NUL bytes or a file: URL, got 7'],
  [
    'nothing',
    undefined,
    TypeError,
    'path must be a non-empty string without NUL bytes or a file: URL, got undefined',
  ],
  [
    'a URL of the web',
    new URL('https://x/y'),
    TypeError,
    'path must be a non-empty string without NUL bytes or a file: URL, got https:',
  ],
  ['a glob', '/etc/*.yaml', TypeError, 'path "/etc/*.yaml" contains "*", and globs are not expanded'],
  ['no path at all', [], TypeError, 'path must name at least one file'],
  ['the same path twice', ['/a', new URL('file:///a')], TypeError, 'path names "/a" twice'],
])('a path that is %s is refused', (_, path, kind, message) => {
  const construct = (): unknown => new ResilientWatcher(path as string);
  expect(construct).toThrow(kind);
  expect(construct).toThrow(`ResilientWatcher: ${message}`);
});

test.each([
  [7, TypeError, 'options must be an object, got 7'],
  [[], TypeError, 'options must be an object, got an array'],
  [
    { pollInterval: 5 },
    TypeError,
    'unknown option "pollInterval"; the nearest one is "pollIntervalMs"; known are',
  ],
  [{ settleMs: '50' }, TypeError, 'option "settleMs" must be a finite number >= 0 (ms), got "50"'],
  [{ settleMs: -1 }, RangeError, 'option "settleMs" must be a finite number >= 0 (ms), got -1'],
  [
    { restartDelayMs: 5_001 },
    RangeError,
    'option "restartDelayMs" must be at most "maxRestartDelayMs" (ms), got 5001 and 5000',
  ],
  [
    { settleMs: 10_001 },
    RangeError,
    'option "settleMs" must be at most "maxSettleMs" (ms), got 10001 and 10000',
  ],
  [
    { settleMs: 200, maxSettleMs: 100 },
    RangeError,
    'option "settleMs" must be at most "maxSettleMs" (ms), got 200 and 100',
  ],
  [{ missingGraceMs: NaN }, RangeError, 'option "missingGraceMs" must be'],
  [{ maxSettleMs: Infinity }, RangeError, 'option "maxSettleMs" must be'],
  [{ resyncIntervalMs: null }, TypeError, 'option "resyncIntervalMs" must be'],
  [{ pollIntervalMs: 0 }, RangeError, 'option "pollIntervalMs" must be a finite number >= 1 (ms), got 0'],
  [{ restartDelayMs: 0 }, RangeError, 'option "restartDelayMs" must be'],
  [{ maxRestartDelayMs: -5 }, RangeError, 'option "maxRestartDelayMs" must be'],
  [
    { maxContentBytes: 2 ** 31 },
    RangeError,
    'option "maxContentBytes" must be a finite number between 0 and',
  ],
  [
    { backend: 'inotify' },
    TypeError,
    'option "backend" must be one of "auto", "fs", "parcel", "poll", or an object',
  ],
  [{ backend: {} }, TypeError, 'option "backend" must be'],
  [{ persistent: 'yes' }, TypeError, 'option "persistent" must be a boolean, got "yes"'],
  [{ signal: {} }, TypeError, 'option "signal" must be an AbortSignal, got an object'],
  [{ clock: {} }, TypeError, 'option "clock" must be an object with now, monotonic, schedule'],
  [{ random: 4 }, TypeError, 'option "random" must be a function, got 4'],
  [{ name: '' }, TypeError, 'option "name" must be a non-empty string'],
  [
    { ignore: ['x'] },
    TypeError,
    'option "ignore" belongs inside "recursive", as in { recursive: { ignore: … } }',
  ],
  [{ recursive: true, content: true }, TypeError, 'option "content" belongs inside "recursive"'],
  [{ recursive: { ignore: [7] } }, TypeError, 'recursive: option "ignore" must be an array of globs'],
  [{ recursive: { ignore: 'x' } }, TypeError, 'recursive: option "ignore" must be an array of globs'],
  [{ recursive: { ignore: ['[z-a]'] } }, TypeError, 'recursive: option "ignore" must be an array of globs'],
  [{ recursive: { maxFiles: 1 } }, TypeError, 'recursive: unknown option "maxFiles"'],
  [{ recursive: [] }, TypeError, 'recursive: options must be an object, got an array'],
  [{ recursive: 'yes' }, TypeError, 'option "recursive" must be a boolean or an object'],
  [{ groupSettleMs: 5 }, TypeError, 'option "groupSettleMs" has no effect on a single path'],
  [
    { backend: 'poll', maxRestartDelayMs: 3 },
    TypeError,
    'option "maxRestartDelayMs" has no effect with the backend "poll"',
  ],
  [
    { recursive: { content: false }, maxFiles: 3 },
    TypeError,
    'option "maxFiles" has no effect with "recursive.content": false',
  ],
  [{ fs: {} }, TypeError, 'option "fs" must be an object with lstatSync, lstat,'],
])('options %j are refused', (options, kind, message) => {
  const construct = (): unknown => new ResilientWatcher('/etc/app.yaml', options as object);
  expect(construct).toThrow(kind);
  expect(construct).toThrow(`ResilientWatcher: ${message}`);
});

test('an array of paths is refused with `recursive`, which is for one directory', () => {
  expect(() => new ResilientWatcher(['/a', '/b'], { recursive: true })).toThrow(TypeError);
  expect(() => new ResilientWatcher(['/a', '/b'], { recursive: true })).toThrow(
    /an array of paths cannot be watched with "recursive"/,
  );
});

test('a file: URL is a path, even if the name of the file contains a star', () => {
  expect(new ResilientWatcher(new URL('file:///etc/app.yaml')).path).toBe('/etc/app.yaml');
  expect(new ResilientWatcher(pathToFileURL('/etc/*.yaml')).path).toBe('/etc/*.yaml');
});

test('undefined means the default, and the options given are not changed', () => {
  const options = Object.freeze({ settleMs: undefined, backend: undefined, signal: undefined });
  expect(() => new ResilientWatcher('/etc/app.yaml', options)).not.toThrow();
});

test.each([
  [
    ['*.log', '!**/*.md'],
    '"!**/*.md", which begins with "!" or has a "(": use a regular expression or a function',
  ],
  [['/etc/app/*.tmp'], '"/etc/app/*.tmp", which is absolute: what it matches is relative to the directory'],
  [['{a,/b}/*'], '"{a,/b}/*", which is absolute: what it matches is relative to the directory'],
  [['../*.tmp'], '"../*.tmp", which matches nothing: no path has ".." between its slashes'],
  [['a//b'], '"a//b", which matches nothing: no path has "" between its slashes'],
  [['a', ''], '""'],
  [['{a'], '"{a", which has a "{" without a "}"'],
  [['[a'], '"[a", which has a "[" without a "]"'],
  [['[z-a]'], '"[z-a]", which has a range that ends before it begins: "[z-a]"'],
])('a glob that can match nothing, or is not one, is refused by name: %j', (ignore, got) => {
  const message =
    'ResilientWatcher: recursive: option "ignore" must be an array of globs such as "**/*.tmp", ' +
    `regular expressions and functions, got ${got}`;
  expect(() => new ResilientWatcher('/etc/app', { recursive: { ignore } })).toThrow(new TypeError(message));
});
