/**
 * `ReloadAction` as a property: whatever actions, checks and listeners do, and whenever updates come, two runs never
 * overlap and no update is lost: each one is reported as handled once, or is left in `unhandled` at the end.
 */
import fc from 'fast-check';
import { ReloadAction, type Action, type ActionUpdate } from '../../src/action.js';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { rounds } from '../../../../test/support/rounds.js';

const STOP_TIMEOUT_MS = 200;

/** What a run does. The last two do not end by themselves: one stops when it is asked to, the other never ends. */
type Run = 'succeeds' | 'fails' | 'throws' | 'takes 50 ms' | 'hangs' | 'ignores its signal';
const run = fc.constantFrom<Run[]>(
  'succeeds',
  'fails',
  'throws',
  'takes 50 ms',
  'hangs',
  'ignores its signal',
);

/** What is done between two steps, in a listener or in a run. */
type Deed = 'nothing' | 'trigger' | 'throw' | 'close';
const deed: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 6, arbitrary: fc.constant('nothing' as const) },
  { weight: 3, arbitrary: fc.constant('trigger' as const) },
  { weight: 1, arbitrary: fc.constantFrom('throw' as const, 'close' as const) },
);

const step = fc.oneof(
  fc.record({ do: fc.constantFrom('trigger' as const, 'close' as const) }),
  fc.record({ do: fc.constant('microtasks' as const), amount: fc.nat(8) }),
  fc.record({ do: fc.constant('pass' as const), amount: fc.constantFrom(0, 1, 30, 200, 1_500) }),
  fc.record({ do: fc.constant('jump' as const), amount: fc.integer({ min: -1e9, max: 1e9 }) }),
);

const options = fc.record({
  actions: fc.integer({ min: 1, max: 3 }),
  isChecked: fc.boolean(),
  maxAttempts: fc.constantFrom(1, 2, Infinity),
  splayMs: fc.constantFrom(0, 50),
  cooldownMs: fc.constantFrom(0, 400),
});

const update = (key: string): ActionUpdate => ({
  paths: [{ path: '/etc/app', added: [], changed: [key], removed: [], revision: null }],
  cause: 'fs',
});

const keysOf = (given: ActionUpdate | undefined): readonly string[] => given?.paths[0]?.changed ?? [];

test('two runs never overlap, and each update is handled once or is left in unhandled', async () => {
  await fc.assert(
    fc.asyncProperty(
      options,
      fc.array(step, { minLength: 1, maxLength: 25 }),
      fc.infiniteStream(run),
      fc.infiniteStream(deed),
      async ({ actions, isChecked, ...settings }, steps, runs, deeds) => {
        const clock = new FakeClock();
        const triggered: string[] = [];
        const handled: string[] = [];
        /** Those for which the last action has succeeded. If it was closed at that moment, there is no event. */
        const completed: string[] = [];
        let running = 0;
        let mostRunning = 0;
        let isHealed = false;
        let end: Promise<void> | undefined;

        const trigger = (): void => {
          if (end) return;
          triggered.push(`key ${triggered.length}`);
          reload.trigger(update(triggered.at(-1) ?? ''));
        };
        const close = (): void => {
          end ??= reload.close();
        };
        const meddle = (): void => {
          const what = isHealed ? 'nothing' : (deeds.next().value as Deed);
          if (what === 'trigger') trigger();
          if (what === 'close') close();
          if (what === 'throw') throw new Error('a listener or an action');
        };

        const lastAction = `action ${actions - 1}`;
        const action = (name: string): Action => ({
          name,
          run: (given, { signal }) => {
            const what = isHealed ? 'succeeds' : (runs.next().value as Run);
            mostRunning = Math.max(mostRunning, (running += 1));
            let isOver = false;
            const over = (): void => {
              if (!isOver) running -= 1;
              isOver = true;
            };
            return new Promise<void>((resolve, reject) => {
              const finish = (error?: Error): void => {
                over();
                if (error) reject(error);
                else resolve();
                if (!error && name === lastAction) completed.push(...keysOf(given));
              };
              signal.addEventListener('abort', () => {
                // One that ignores its signal is given up after this time; the next one may then run beside it.
                clock.schedule(over, STOP_TIMEOUT_MS - 1);
                if (what !== 'ignores its signal') finish(new Error('stopped'));
              });
              if (what === 'succeeds') {
                try {
                  meddle();
                  finish();
                } catch (error) {
                  finish(error as Error);
                }
              }
              if (what === 'fails') finish(new Error('failed'));
              if (what === 'throws') throw (over(), new Error('thrown'));
              if (what === 'takes 50 ms') clock.schedule(() => finish(), 50);
            });
          },
        });
        const reload = new ReloadAction({
          ...settings,
          action: Array.from({ length: actions }, (_, index) => action(`action ${index}`)),
          ...(isChecked && { check: action('check') }),
          clock,
          timeoutMs: 1_000,
          stopTimeoutMs: STOP_TIMEOUT_MS,
          retryDelayMs: 50,
          maxRetryDelayMs: 400,
        });
        let isClosed = false;
        for (const event of ['started', 'succeeded', 'failed', 'rejected'] as const) {
          reload.on(event, (detail) => {
            expect(isClosed).toBe(false);
            if (event === 'succeeded') handled.push(...keysOf(detail.update));
            meddle();
          });
        }
        reload.on('error', () => undefined);

        for (const next of steps) {
          if (next.do === 'trigger') trigger();
          if (next.do === 'close') close();
          if (next.do === 'jump') clock.jump(next.amount);
          if (next.do === 'pass') await clock.advance(next.amount);
          if (next.do === 'microtasks')
            for (let turn = next.amount; turn > 0; turn -= 1) await Promise.resolve();
        }
        // From here on all goes well, unless it was closed.
        isHealed = true;
        trigger();
        await clock.advance(5_000);
        const wasClosed = end !== undefined;
        if (!wasClosed) {
          await reload.idle();
          expect(reload.unhandled).toBeUndefined();
          expect(reload.status()).toMatchObject({ state: 'ready', lastSuccessful: triggered.length > 0 });
        }
        close();
        void end?.then(() => (isClosed = true));
        await clock.advance(STOP_TIMEOUT_MS);
        expect([isClosed, clock.pending, mostRunning <= 1]).toEqual([true, 0, true]);
        const accounted = [...handled, ...keysOf(reload.unhandled)];
        expect(new Set(accounted).size).toBe(accounted.length);
        expect(new Set([...accounted, ...completed])).toEqual(new Set(triggered));
      },
    ),
    { numRuns: rounds(100, 3_000) },
  );
});
