import fc from 'fast-check';
import { TokenRefresher, type TokenError } from 'resilient-watcher';
import { FakeClock, FakeTokenClient, type TokenStep } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { DAY, HOUR, MINUTE, SECOND } from '../support/refresher-scene.js';
import { rounds } from '../support/rounds.js';
import { ProjectedToken } from '../support/projected-token.js';

type Action =
  | { readonly do: 'pass' | 'jump'; readonly ms: number }
  | { readonly do: 'server'; readonly step: Fault }
  | { readonly do: 'sink'; readonly fails: boolean }
  | { readonly do: 'project' | 'watcher ends' | 'rotate' | '401' | 'refresh' | 'heal' };

type Fault = 'error' | 'TypeError' | 'hang' | 'slow' | 'retry-after' | 'unsupported' | 'malformed' | 'old';

const faults: Record<Fault, (client: FakeTokenClient) => TokenStep> = {
  error: () => ({ error: new Error('ECONNRESET') }),
  TypeError: () => ({ error: new TypeError('fetch failed') }),
  hang: () => ({ delayMs: Infinity }),
  slow: () => ({ delayMs: 7 * SECOND }),
  'retry-after': () => ({ error: FakeTokenClient.tooManyRequests(2 * MINUTE) }),
  unsupported: () => ({ error: FakeTokenClient.unsupported() }),
  malformed: () => ({ answer: { token: 'x.y', expirationTimestamp: 'soon' } }),
  old: (client) => ({ answer: client.mint(600) }),
};

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 12 * HOUR }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 10 * SECOND }) }),
  },
  fc.record({ do: fc.constant('jump' as const), ms: fc.integer({ min: -60 * DAY, max: 60 * DAY }) }),
  fc.record({
    do: fc.constant('server' as const),
    step: fc.constantFrom(...(Object.keys(faults) as Fault[])),
  }),
  fc.record({ do: fc.constant('sink' as const), fails: fc.boolean() }),
  fc.constantFrom('project', 'rotate', '401', 'refresh', 'heal').map((name) => ({ do: name as 'project' })),
);

test('in any sequence of faults no expired token is returned, requests never overlap and are few, and a valid token follows the last fault', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { minLength: 1, maxLength: 25 }),
      fc.constantFrom('quarter' as const, 'kubelet' as const),
      fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
      async (actions, schedule, chances) => {
        const clock = new FakeClock();
        const client = new FakeTokenClient({ clock });
        const file = new ProjectedToken('0');
        const delivered: string[] = [];
        const starts: number[] = [];
        let sinkFails = false;
        const refresher = new TokenRefresher({
          client: {
            requestToken: (request, options) => {
              starts.push(clock.monotonic());
              return client.requestToken(request, options);
            },
          },
          clock,
          schedule,
          random: () => chances.next().value as number,
          tokenFile: file.path,
          tokenFileOptions: file.options,
          sinks: [
            (token) => {
              if (sinkFails) throw new Error('EIO');
              delivered.push(token.value);
            },
          ],
        });
        const expired: unknown[] = [];
        refresher.on('expired', ({ current }) => expired.push(current));
        void refresher.start();

        const checkToken = async (): Promise<void> => {
          await clock.advance(0);
          expect(Math.max(0, ...clock.delays)).toBeLessThanOrEqual(2 * MINUTE);
          const asked = refresher.get().then(
            (token) => expect(token.expiresAt).toBeGreaterThan(clock.now()),
            (error: unknown) =>
              expect((error as TokenError).code).toMatch(/^ERR_TOKEN_(EXPIRED|UNAVAILABLE)$/),
          );
          // It may be waiting for the attempt under way.
          await clock.advance(11 * SECOND);
          await asked;
        };

        let projected = 0;
        for (const step of actions) {
          if (step.do === 'pass') await clock.advance(step.ms);
          if (step.do === 'jump') clock.jump(step.ms);
          if (step.do === 'server') client.otherwise = faults[step.step](client);
          if (step.do === 'sink') sinkFails = step.fails;
          if (step.do === 'project') file.show(String((projected += 1)));
          if (step.do === 'rotate') client.rotateSigningKey();
          if (step.do === 'refresh') void refresher.refresh();
          if (step.do === 'heal') client.otherwise = {};
          if (step.do === '401') {
            void refresher.get().then(
              (token) => void refresher.reportUnauthorized(token),
              () => {},
            );
          }
          await checkToken();
        }

        // The faults end: within one retry period (and the longest Retry-After) a good token is there and delivered.
        client.otherwise = {};
        sinkFails = false;
        void refresher.refresh();
        await clock.advance(5 * MINUTE);
        const token = await refresher.get();
        expect(client.accepts(token.value)).toBe(true);
        expect(token.expiresAt).toBeGreaterThan(clock.now());
        expect(delivered.at(-1)).toBe(token.value);

        expect(client.mostInFlight).toBe(1);
        expect(new Set(expired).size).toBe(expired.length);
        for (const [index, start] of starts.slice(1).entries()) {
          expect(start - (starts[index] ?? -Infinity)).toBeGreaterThanOrEqual(1_000 - 1e-3);
        }
        await refresher.close();
        expect(clock.pending).toBe(0);
      },
    ),
    { numRuns: rounds(5, 150) },
  );
});
