import { getEventListeners } from 'node:events';

import { expect, test } from 'vitest';

import { Lifecycle, type LifecycleState } from '../../src/core/lifecycle/lifecycle.js';
import type { Lifetime } from '../../src/core/lifecycle/lifetime.js';
import { Outcome } from '../../src/core/scheduling/outcome.js';

interface Hooks {
  readonly signal?: AbortSignal | undefined;
  open?(): Promise<unknown>;
  run?(): void | Promise<void>;
  end?(): unknown;
}

class Subject extends Lifecycle<object> {
  declare readonly lifetime: Lifetime;
  readonly #hooks: Hooks;

  constructor(hooks: Hooks) {
    super(hooks.signal);
    this.#hooks = hooks;
  }

  get state(): LifecycleState {
    return this.lifecycleState;
  }

  override throwIfClosed(): void {
    super.throwIfClosed();
  }

  protected readonly purpose = 'go on';
  protected override onStart(): Promise<unknown> {
    return this.#hooks.open?.() ?? super.onStart();
  }

  protected override onRunning(): void | Promise<void> {
    return this.#hooks.run?.();
  }

  protected override onClose(): unknown {
    return this.#hooks.end?.();
  }

  protected announce(): void {}
}

const subject = (hooks: Hooks): Subject => new Subject(hooks);

/** A lifecycle that records the calls of its hooks, and opens when the test lets it. */
function recordedLifecycle(signal?: AbortSignal) {
  const calls: string[] = [];
  let opening = new Outcome<void>();
  const lifecycle = subject({
    signal,
    open: () => {
      calls.push('open');
      opening = new Outcome();
      return opening.promise;
    },
    run: () => void calls.push('run'),
    end: () => calls.push('end'),
  });
  return {
    lifecycle,
    calls,
    opened: () => opening.resolve(),
    refused: (error: Error) => opening.reject(error),
  };
}

test('start() within open() is the same start, and after an open() that throws it can be called again', async () => {
  let opened = 0;
  const within: Promise<void>[] = [];
  const lifecycle = subject({
    open: () => {
      opened += 1;
      // Twice at most: a start that opens again would do so for ever.
      if (opened < 3) within.push(lifecycle.start());
      if (opened === 1) throw new Error('not yet');
      return Promise.resolve();
    },
  });
  const first = lifecycle.start();
  await expect(first).rejects.toThrow('not yet');
  const second = lifecycle.start();
  await second;
  expect([opened, within[0] === first, within[1] === second]).toEqual([2, true, true]);
});

test.each<[string, (controller: AbortController, close: () => void) => void, string]>([
  ['close()', (_, close) => close(), 'Cannot go on'],
  ['the signal', (controller) => controller.abort(new Error('enough')), 'enough'],
])('%s ends it in any state, once, and what is under way rejects', async (_, end, reason) => {
  for (const when of ['idle', 'starting', 'running'] as const) {
    const controller = new AbortController();
    const { lifecycle, calls, opened } = recordedLifecycle(controller.signal);
    const started = when === 'idle' ? undefined : lifecycle.start();
    if (when === 'running') {
      opened();
      await started;
    }
    end(controller, () => void lifecycle.close());
    expect(lifecycle.state).toBe('closed');
    if (when === 'starting') {
      // What it opens may hang for ever.
      await expect(started).rejects.toThrow(reason);
      opened();
    }
    await expect(lifecycle.start()).rejects.toThrow(reason);
    expect(() => lifecycle.throwIfClosed()).toThrow(reason);
    expect(lifecycle.close()).toBe(lifecycle.close());
    await lifecycle.close();
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    expect(calls.filter((word) => word !== 'open')).toEqual(when === 'running' ? ['run', 'end'] : ['end']);
  }
});

test('close() waits for the work in progress and for the work of its own end, for every caller', async () => {
  const work = new Outcome<void>();
  const shutdown = new Outcome<void>();
  const calls: string[] = [];
  const lifecycle: Subject = subject({
    run: () => void lifecycle.lifetime.track(work.promise),
    end: () => {
      calls.push('end');
      void lifecycle.lifetime.track(shutdown.promise);
    },
  });
  await lifecycle.start();
  let within: Promise<void> | undefined;
  lifecycle.lifetime.signal.addEventListener('abort', () => {
    within = lifecycle.close();
  });
  const closed = lifecycle.close().then(() => calls.push('closed'));
  expect(within).toBe(lifecycle.close());
  shutdown.resolve();
  await shutdown.promise;
  expect(calls).toEqual(['end']);
  work.resolve();
  await closed;
  expect(calls).toEqual(['end', 'closed']);

  const idle = subject({
    end: () => {
      const released = new Promise((resolve) => setImmediate(resolve));
      void idle.lifetime.track(released.then(() => calls.push('released')));
    },
  });
  await idle.close();
  expect(calls.at(-1)).toBe('released');
});
