import { expect, test } from 'vitest';

import { Outcome } from '../../src/core/scheduling/outcome.js';
import { SerialQueue } from '../../src/core/scheduling/serial-queue.js';

test('work for one key runs one after another, also after a failure; work for another key does not wait', async () => {
  const queue = new SerialQueue();
  const log: string[] = [];
  const gate = new Outcome<undefined>();
  const first = queue.run('a', async () => {
    log.push('first begins');
    await gate.promise;
    log.push('first fails');
    throw new Error('failed');
  });
  const second = queue.run('a', () => Promise.resolve(log.push('second')));
  await queue.run('b', () => Promise.resolve(log.push('other')));
  expect(log).toEqual(['first begins', 'other']);
  expect(queue.size).toBe(1);
  gate.resolve(undefined);
  await expect(first).rejects.toThrow('failed');
  await second;
  expect(log).toEqual(['first begins', 'other', 'first fails', 'second']);
  expect(queue.size).toBe(0);
});

test('work that fails synchronously does not block the queue', async () => {
  const queue = new SerialQueue();
  const failing = queue.run('a', () => {
    throw new TypeError('at once');
  });
  await expect(failing).rejects.toThrow('at once');
  expect(await queue.run('a', () => Promise.resolve('next'))).toBe('next');
});

test('work that is added while other work begins waits for it', async () => {
  const queue = new SerialQueue();
  const log: string[] = [];
  let inner: Promise<unknown> | undefined;
  await queue.run('a', async () => {
    inner = queue.run('a', () => Promise.resolve(log.push('inner')));
    await Promise.resolve();
    log.push('outer');
  });
  await inner;
  expect(log).toEqual(['outer', 'inner']);
  expect(queue.size).toBe(0);
});
