import { subscribe, unsubscribe, tracingChannel } from 'node:diagnostics_channel';

import { expect, onTestFinished, test } from 'vitest';

import { Component, type ComponentEvents, type ComponentStatus } from '../../src/core/lifecycle/component.js';
import { systemClock } from '../../src/core/ports/clock.js';
import { TargetError } from '../../src/fs/target-error.js';
import { runningComponents, traceSync } from '../../src/core/telemetry/telemetry.js';
import { EVENTS } from '../../src/core/telemetry/telemetry-points.js';
import { observe } from '../../src/telemetry/observe.js';

interface Events extends ComponentEvents {
  change: [change: object];
  unreadable: [event: { readonly error: Error }];
  secret: [secret: string];
}

class Sample extends Component<Events, ComponentStatus> {
  constructor(name: string) {
    super({ name, kind: 'Sample', signal: undefined, clock: systemClock });
  }

  status(): ComponentStatus {
    return { name: this.name, state: this.state, lastError: this.lastError };
  }

  readonly emitEvent = this.dispatch.bind(this);

  work<T>(work: () => Promise<T>): Promise<T> {
    return this.trace('check', { cause: 'fs' }, work, () => 'changed');
  }

  protected override get purpose(): string {
    return 'sample';
  }
}

/** Records the messages of every point channel that are about `component`. */
function messagesAbout(component: string): [string, Record<string, unknown>][] {
  const messages: [string, Record<string, unknown>][] = [];
  for (const name of Object.keys(EVENTS)) {
    const listener = (message: unknown): void => {
      const { component: handle, ...rest } = message as { component: { name: string } };
      if (handle.name === component) messages.push([name, rest]);
    };
    subscribe(`resilient-watcher:${name}`, listener);
    onTestFinished(() => void unsubscribe(`resilient-watcher:${name}`, listener));
  }
  return messages;
}

test('a component publishes its start, its end and what it emits, and of an event only the listed fields', async () => {
  const messages = messagesAbout('sample');
  const component = new Sample('sample');
  component.on('error', () => {});
  await component.start();
  component.emitEvent('change', { cause: 'fs', added: ['a'], current: 'CONTENT', token: 'TOKEN' });
  component.emitEvent('unreadable', {
    error: new TargetError('ERR_TARGET_IO', '/a', 'Cannot read', { cause: 'CONTENT' }),
  });
  component.emitEvent('secret', 'SECRET');
  component.emitEvent('error', new TypeError('CONTENT'));
  await component.close();
  component.emitEvent('change', { cause: 'late' });

  expect(messages).toEqual([
    ['start', {}],
    ['change', { cause: 'fs', added: ['a'] }],
    ['unreadable', { error: { name: 'TargetError', code: 'ERR_TARGET_IO', message: 'Cannot read' } }],
    ['error', { error: { name: 'TypeError', code: null, message: '' } }],
    ['close', {}],
  ]);
});

test('the error of a listener is published without its message', async () => {
  const messages = messagesAbout('listener');
  const component = new Sample('listener');
  component.on('error', () => {});
  component.on('change', () => {
    throw new Error('CONTENT');
  });
  component.emitEvent('change', {});
  await component.close();
  expect(messages).toContainEqual([
    'error',
    { error: { name: 'ListenerError', code: 'ERR_LISTENER', message: 'A listener of "change" failed' } },
  ]);
});

test('an operation is one message on its tracing channel, from start to end, with its result or its error', async () => {
  const component = new Sample('operation');
  const seen: [string, unknown][] = [];
  const record =
    (step: string) =>
    (message: object): void => {
      const { component: handle, ...rest } = message as { component: { name: string } };
      if (handle.name === 'operation') seen.push([step, { ...rest }]);
    };
  const steps = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;
  const subscribers = Object.fromEntries(steps.map((step) => [step, record(step)])) as never;
  tracingChannel('resilient-watcher.check').subscribe(subscribers);
  onTestFinished(() => {
    tracingChannel('resilient-watcher.check').unsubscribe(subscribers);
  });

  await expect(component.work(() => Promise.resolve('CONTENT'))).resolves.toBe('CONTENT');
  const failure = new RangeError('CONTENT');
  await expect(component.work(() => Promise.reject(failure))).rejects.toBe(failure);

  const error = { name: 'RangeError', code: null, message: '' };
  expect(seen).toEqual([
    ['start', { cause: 'fs' }],
    ['end', { cause: 'fs' }],
    ['asyncStart', { cause: 'fs', result: 'changed' }],
    ['asyncEnd', { cause: 'fs', result: 'changed' }],
    ['start', { cause: 'fs' }],
    ['end', { cause: 'fs' }],
    ['error', { cause: 'fs', error }],
    ['asyncStart', { cause: 'fs', error }],
    ['asyncEnd', { cause: 'fs', error }],
  ]);
});

test('an observer of beginnings alone hears of an operation before its work', async () => {
  const heard: string[] = [];
  using _observer = observe({
    started: ({ name, message }) => {
      if (message.component?.name === 'observed') heard.push(name);
    },
  });
  await new Sample('observed').work(() => {
    heard.push('work');
    return Promise.resolve();
  });
  expect(heard).toEqual(['check', 'work']);
});

test('synchronous work publishes its end with the result, and a failure is thrown unchanged', () => {
  const seen: unknown[] = [];
  const channel = 'tracing:resilient-watcher.write:end';
  const end = (message: unknown): void => void seen.push({ ...(message as object) });
  subscribe(channel, end);
  onTestFinished(() => {
    unsubscribe(channel, end);
  });

  expect(traceSync('write', { path: '/a' }, () => 7, String)).toBe(7);
  const failure = new TargetError('ERR_TARGET_IO', '/a', 'full');
  expect(() =>
    traceSync(
      'write',
      { path: '/b' },
      (): string => {
        throw failure;
      },
      String,
    ),
  ).toThrow(failure);
  expect(seen).toEqual([
    { path: '/a', result: '7' },
    { path: '/b', error: { name: 'TargetError', code: 'ERR_TARGET_IO', message: 'full' } },
  ]);
});

test('the components that run are known from their start to their end, whether or not anything subscribes', async () => {
  const names = (): string[] => Array.from(runningComponents(), ({ name }) => name);
  const component = new Sample('followed');
  expect(names()).not.toContain('followed');
  await component.start();
  expect(names().filter((name) => name === 'followed')).toHaveLength(1);
  await component.close();
  expect(names()).not.toContain('followed');
});

test('a component whose work fails to begin does not run', async () => {
  class Failing extends Sample {
    protected override onRunning(): Promise<void> {
      return Promise.reject(new Error('no'));
    }
  }
  const messages = messagesAbout('failing');
  await expect(new Failing('failing').start()).rejects.toThrow('no');
  expect(messages).toEqual([
    ['start', {}],
    ['close', {}],
  ]);
  expect(Array.from(runningComponents(), ({ name }) => name)).not.toContain('failing');
});
