/** `PodSync` and an API server that refuses at random: once it refuses nothing, nobody is forgotten. */
import fc from 'fast-check';
import { PodSync } from '@resilient-watcher/sync-pods';
import { FakeClock } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { answered, MemoryCluster, type Refusal } from './support/memory-cluster.js';
import { rounds } from '../../../test/support/rounds.js';

const NAMESPACES = ['shop', 'bank', 'mine'];
const PODS = ['a', 'b', 'c', 'd'];

const REFUSALS: Readonly<Record<string, (name: string, signal: AbortSignal) => Refusal>> = {
  nothing: () => undefined,
  webhookAway: () => [500, 'Internal error occurred: failed calling webhook "w": connection refused'],
  forbidden: (name) => [403, `pods "${name}" is forbidden: User "u" cannot patch resource "pods"`],
  denied: (name) => (name < 'c' ? [422, `admission webhook "w" denied the request: ${name}`] : undefined),
  conflict: (name) => (name === 'a' ? [409, 'Operation cannot be fulfilled'] : undefined),
  gone: (name) => (name === 'b' ? [404, `pods "${name}" not found`] : undefined),
  throttled: () => answered(429, 'too many requests'),
  away: () => new Error('connection refused'),
  silent: (_, signal) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
};

const namespace = fc.constantFrom(...NAMESPACES);
const step = fc.oneof(
  fc.record({
    kind: fc.constant('refuse' as const),
    namespace,
    how: fc.constantFrom(...Object.keys(REFUSALS)),
  }),
  fc.record({ kind: fc.constant('change' as const), namespace }),
  fc.record({ kind: fc.constant('replace' as const), namespace, pod: fc.constantFrom(...PODS) }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 40_000 }) }),
);

test('once nothing is refused, every pod is patched with the newest version, and it is healthy', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const clock = new FakeClock();
      const cluster = new MemoryCluster();
      for (const each of NAMESPACES) cluster.fill(each, PODS);
      await using sync = new PodSync({ client: cluster, clock, namespaces: NAMESPACES, random: () => 0.5 });
      await sync.start();
      const refusals: Record<string, string> = {};
      cluster.refuse = ({ namespace: of, name, signal }) =>
        REFUSALS[refusals[of] ?? 'nothing']?.(name, signal);
      for (const each of steps) {
        if (each.kind === 'refuse') refusals[each.namespace] = each.how;
        else if (each.kind === 'change') cluster.change(each.namespace);
        else if (each.kind === 'pass') await clock.advance(each.ms);
        else {
          cluster.deletePod(each.namespace, each.pod);
          cluster.putPod(each.namespace, each.pod);
        }
      }
      cluster.refuse = () => undefined;
      await clock.advance(50_000);
      expect(sync.status()).toMatchObject({ healthy: true, waiting: 0 });
      for (const each of NAMESPACES) cluster.change(each);
      await clock.advance(60_000);
      expect(sync.status()).toMatchObject({ healthy: true, waiting: 0 });
      for (const each of NAMESPACES) {
        const values = PODS.map((name) => cluster.annotation(each, name)?.slice(0, 16));
        expect(values[0]).toMatch(/^[\da-f]{16}$/);
        expect(new Set(values).size).toBe(1);
      }
    }),
    { numRuns: rounds(20, 1_000) },
  );
}, 300_000);
