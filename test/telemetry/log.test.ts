import { Console } from 'node:console';
import { Writable } from 'node:stream';

import { expect, onTestFinished, test, vi } from 'vitest';

import { BackendError } from '../../src/core/errors/backend-error.js';
import { TargetError } from '../../src/fs/target-error.js';
import { logTo, type LogOptions, type StructuredLogger } from '../../src/telemetry/log.js';
import { SampleComponent } from './sample-component.js';

type Entry = readonly [level: string, text: string, fields: object];

function logOf(component: SampleComponent, options?: LogOptions): Entry[] {
  const entries: Entry[] = [];
  const levelOf = (level: string) => (fields: object, text: string) => {
    if ((fields as { name?: string }).name === component.name) entries.push([level, text, fields]);
  };
  const logger: StructuredLogger = {
    debug: levelOf('debug'),
    info: levelOf('info'),
    warn: levelOf('warn'),
    error: levelOf('error'),
  };
  const subscription = logTo(logger, options);
  onTestFinished(() => {
    subscription.close();
  });
  return entries;
}

test('each event is one line whose level says whether it needs attention', async () => {
  const component = new SampleComponent('ResilientWatcher', 'logged');
  const entries = logOf(component);
  const limit = new BackendError('ERR_BACKEND_LIMIT', 'fs', 'No watch is left');
  await component.start();
  component.emitEvent('change', { cause: 'fs', added: [], changed: ['a.yaml'], removed: [] });
  component.emitEvent('restart', { attempt: 1, delayMs: 20, error: limit });
  component.emitEvent('degraded', { error: limit, pollIntervalMs: 1_000 });
  component.emitEvent('recovered', { backend: 'fs', degradedMs: 70 });
  component.emitEvent('warning', { code: 'subPath', message: 'Mounted by itself' });
  component.emitEvent('unreadable', { error: new TargetError('ERR_TARGET_ACCESS', '/a', 'Denied') });
  component.emitEvent('readable', { unreadableMs: 5 });
  component.emitEvent('rejected', {
    problems: [{ code: 'ERR_CONFIG_PARSE', source: 'a', message: 'not YAML' }],
  });
  component.emitEvent('retry', { error: limit, request: 'list pods', delayMs: 70.2 });
  component.emitEvent('unhealthy', { error: new TargetError('ERR_TARGET_IO', '/a', 'Broken') });
  component.emitEvent('healthy');
  component.emitEvent('error', limit);
  await component.close();

  const who = 'ResilientWatcher "logged"';
  expect(entries.map(([level, text]) => `${level} ${text}`)).toEqual([
    `info ${who}: started`,
    `info ${who}: changed: a.yaml`,
    `info ${who}: subscribing again, attempt 1`,
    `warn ${who}: degraded to polling: No watch is left`,
    `info ${who}: native watching works again`,
    `warn ${who}: Mounted by itself`,
    `warn ${who}: unreadable: Denied`,
    `info ${who}: readable again`,
    `warn ${who}: update rejected: not YAML`,
    `warn ${who}: No watch is left; next attempt in 70 ms`,
    `warn ${who}: unhealthy: Broken`,
    `info ${who}: healthy`,
    `error ${who}: No watch is left`,
    `info ${who}: closed`,
  ]);
  expect(entries[1]?.[2]).toEqual({
    event: 'change',
    component: 'ResilientWatcher',
    name: 'logged',
    cause: 'fs',
    added: [],
    changed: ['a.yaml'],
    removed: [],
  });
});

test('a watcher says what it found first, what changed since, and that nothing is there', () => {
  const component = new SampleComponent('ResilientWatcher', 'kinds');
  const entries = logOf(component);
  const none = { added: [], changed: [], removed: [] };
  component.emitEvent('change', { ...none, cause: 'start', kind: 'directory' });
  component.emitEvent('change', { ...none, cause: 'start', kind: 'volume', added: ['a', 'b'] });
  component.emitEvent('change', {
    added: ['c'],
    changed: ['a'],
    removed: ['b'],
    cause: 'fs',
    kind: 'volume',
  });
  component.emitEvent('change', { ...none, removed: ['a', 'c'], cause: 'fs', kind: 'missing' });
  expect(entries.map(([, text]) => text.replace('ResilientWatcher "kinds": ', ''))).toEqual([
    'empty',
    'found: a, b',
    'changed: +c, a, -b',
    'missing: -a, -c',
  ]);
});

test('requests that fail for one reason are one line, with their number', () => {
  const component = new SampleComponent('TokenRefresher', 'sync');
  const entries: string[] = [];
  const line = (fields: object, text: string): void => {
    if ((fields as { name?: string }).name === 'sync') entries.push(text);
  };
  const subscription = logTo({ debug: line, info: line, warn: line, error: line });
  const error = new BackendError('ERR_BACKEND_DOWN', 'api', 'refused');
  for (const delayMs of [1, 2]) component.emitEvent('retry', { error, request: 'list pods', delayMs });
  for (const delayMs of [1, 2]) component.emitEvent('retry', { error, delayMs });
  const retry = (delayMs: number): string => `TokenRefresher "sync": refused; next attempt in ${delayMs} ms`;
  expect(entries.splice(0)).toEqual([retry(1), retry(1), retry(2)]);
  subscription.close();
  expect(entries).toEqual([`${retry(2)} (1 more since the last such line)`]);
});

test('a message of several lines is logged as one line', () => {
  const component = new SampleComponent('ConfigLoader', 'lines');
  const entries = logOf(component);
  const error = new TargetError(
    'ERR_TARGET_IO',
    '/a',
    'It cannot be used:\n  a.yaml:1:2: x\n  b.yaml:3:4: y',
  );
  component.emitEvent('unreadable', { error });
  expect(entries.map(([, text]) => text)).toEqual([
    'ConfigLoader "lines": unreadable: It cannot be used: a.yaml:1:2: x b.yaml:3:4: y',
  ]);
});

test('the level option applies to routine lines only', () => {
  const component = new SampleComponent('ConfigLoader', 'quiet');
  const entries = logOf(component, { level: 'debug' });
  component.emitEvent('change', { paths: [['log', 'level']] });
  component.emitEvent('warning', { code: 'subPath', message: 'Mounted by itself' });
  expect(entries.map(([level]) => level)).toEqual(['debug', 'warn']);
});

test('requests and deliveries of tokens are logged, and their failures', async () => {
  const component = new SampleComponent('TokenRefresher', 'tokens');
  const entries = logOf(component);
  await component.work(
    'token.request',
    { reason: 'timer' },
    () => Promise.resolve(1),
    () => 'issued',
  );
  const refused = component.work(
    'token.delivery',
    { sink: 'vault' },
    () => Promise.reject(new Error('VALUE')),
    () => 'delivered',
  );
  await expect(refused).rejects.toThrow('VALUE');
  expect(entries.map(([level, text]) => `${level} ${text}`)).toEqual([
    'info TokenRefresher "tokens": token request issued',
    'warn TokenRefresher "tokens": token delivery failed: Error',
  ]);
});

test('a console prints one line for each event, with what has changed', () => {
  let text = '';
  const stdout = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  const subscription = logTo(new Console(stdout));
  const component = new SampleComponent('ConfigLoader', 'printed');
  component.emitEvent('change', { paths: [['port'], ['log', 'level']] });
  const keys = Array.from({ length: 7 }, (_, index) => `key-${index}`);
  component.emitEvent('change', { cause: 'fs', added: ['new'], changed: keys, removed: ['old'] });
  const problem = { code: 'ERR_CONFIG_SCHEMA', source: 'a.yaml', message: 'a.yaml:1:2: x' };
  component.emitEvent('rejected', { problems: [problem, problem] });
  component.emitEvent('connectionsEnded', { by: 'serveTls', connections: 1 });
  subscription.close();
  expect(text.split('\n')).toEqual([
    'ConfigLoader "printed": changed: port, log.level',
    'ConfigLoader "printed": changed: +new, key-0, key-1, key-2, key-3 and 4 more',
    'ConfigLoader "printed": update rejected: a.yaml:1:2: x; a.yaml:1:2: x',
    'ConfigLoader "printed": a CA was removed or a certificate revoked; connections of serveTls that end: 1',
    '',
  ]);
});

test.each<[string, () => unknown]>([
  [
    'throws',
    () => {
      throw new Error('The disk is full');
    },
  ],
  ['rejects', () => Promise.reject(new Error('The disk is full'))],
])('a logger that %s disturbs neither the component nor other subscribers', async (_, fail) => {
  const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  onTestFinished(() => {
    warnings.mockRestore();
  });
  const broken = logTo({ debug: fail, info: fail, warn: fail, error: fail });
  onTestFinished(() => {
    broken.close();
  });
  const component = new SampleComponent('ConfigLoader', 'undisturbed');
  const entries = logOf(component);
  const heard = vi.fn();
  component.on('change', heard);
  component.emitEvent('change', {});
  expect(heard).toHaveBeenCalledOnce();
  expect(entries).toHaveLength(1);
  await Promise.resolve();
  expect(warnings.mock.calls.map(([warning]) => String(warning))).toContainEqual(
    expect.stringContaining('A listener of "resilient-watcher:change" failed: The disk is full'),
  );
});

test('a logger without the methods is refused, as is an unknown level', () => {
  expect(() => logTo({ info: () => {} } as never)).toThrow(
    new TypeError('logTo: the logger must have the methods debug, info, warn, error'),
  );
  expect(() => logTo(console, { level: 'warn' as never })).toThrow(
    /option "level" must be one of "debug", "info"/,
  );
});
