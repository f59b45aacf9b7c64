/**
 * The promise of the loader as a property: for any interleaving of good and bad updates, `current` is the merge of
 * the newest good state of each source, and is so within one check of the last good write.
 */
import { renameSync, writeFileSync } from 'node:fs';

import fc from 'fast-check';
import { VolumeProvider, type ConfigMap } from 'resilient-watcher/config';
import { KubeletVolume } from 'resilient-watcher/testing';
import { expect, test } from 'vitest';

import { rounds } from '../support/rounds.js';
import { ConfigScene } from '../support/config-scene.js';

/** A plain file, a key of a volume, a whole volume. */
const SOURCES = ['file', 'key', 'volume'] as const;

type Source = (typeof SOURCES)[number];

/** A source that hangs is tried alone and with others, twice a step, and the sources may come in two steps. */
const LONGEST_STEP_MS = 2_000;

const state = fc.oneof(
  fc.record({ is: fc.constant('good' as const), n: fc.integer({ min: 1, max: 9 }) }),
  // Parsed, but refused by validate, which may also fail to answer.
  fc.record({
    is: fc.constantFrom('refused' as const, 'hanging' as const),
    n: fc.integer({ min: 1, max: 9 }),
  }),
  fc.record({ is: fc.constant('unreadable' as const), n: fc.nat(9) }),
);

const move = fc.record({
  source: fc.constantFrom(...SOURCES),
  state,
  swap: fc.constantFrom('rename' as const, 'remove' as const),
  /** Whether the state is checked before the next update. */
  check: fc.boolean(),
  loseBackend: fc.boolean(),
});

/** What a source then holds, in the format of the plain file. */
function textOf(source: Source, { is, n }: { readonly is: string; readonly n: number }): string {
  if (is === 'unreadable') return `{"${n}`;
  return JSON.stringify({
    own: { [source]: is === 'good' ? n : `${is} ${n}` },
    last: source,
    [`${source}${n}`]: n,
  });
}

test('current is always the merge of the newest good state of each source', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(move, { minLength: 1, maxLength: 12 }), async (script) => {
      const scene = new ConfigScene();
      const { clock, backend } = scene;
      const key = new KubeletVolume(scene.path('key'));
      const volume = new KubeletVolume(scene.path('volume'));
      const write = (source: Source, text: string, swap: 'rename' | 'remove' = 'rename'): void => {
        if (source === 'key') new KubeletVolume(key.directory, { swap }).publish({ 'app.json': text });
        else if (source === 'volume') {
          // One bad key makes the whole revision bad.
          const { own = { volume: undefined }, ...rest } = parsed(text);
          const files = {
            'own.json': text.endsWith('}') ? JSON.stringify(own) : text,
            'rest.json': JSON.stringify(rest),
          };
          new KubeletVolume(volume.directory, { swap }).publish(files);
        } else {
          writeFileSync(scene.path('.file'), text);
          renameSync(scene.path('.file'), scene.path('file'));
        }
      };
      /** What the loader should make of a text. */
      const parsed = (text: string): Record<string, unknown> => {
        try {
          return JSON.parse(text) as Record<string, unknown>;
        } catch {
          return {};
        }
      };
      const newest = new Map<Source, string>();
      const good = new Map<Source, Record<string, unknown>>();
      for (const source of SOURCES) {
        const text = textOf(source, { is: 'good', n: 1 });
        write(source, text);
        good.set(source, parsed(text));
      }
      const loader = scene.loader<ConfigMap>({
        sources: [
          { provider: scene.file('file') },
          { provider: scene.file('key/app.json') },
          {
            provider: new VolumeProvider(volume.directory, {
              clock,
              backend,
              resyncIntervalMs: 0,
              parsers: { '.json': { name: 'JSON', parse: (text) => JSON.parse(text) as unknown } },
            }),
          },
        ],
        validateTimeoutMs: 100,
        validate: (values) => {
          const { own, rest, ...others } = values as Record<string, Record<string, unknown>>;
          const states = Object.values(own ?? {}).map(String);
          if (states.some((one) => one.startsWith('hanging'))) return new Promise<never>(() => undefined);
          if (states.some((one) => one.startsWith('refused'))) throw new Error('refused');
          return { own: own ?? {}, ...others, ...rest } as ConfigMap;
        },
      });
      loader.on('error', () => undefined);
      await scene.load(loader);
      const expected = (): unknown => {
        const layers = SOURCES.map((source) => good.get(source) ?? {});
        const own = layers.map((layer) => layer['own'] as object);
        return { ...Object.assign({}, ...layers), own: Object.assign({}, ...own) as unknown } as unknown;
      };
      expect(loader.current).toEqual(expected());

      for (const [nth, { source, state: written, swap, check, loseBackend }] of script.entries()) {
        const text = textOf(source, written);
        write(source, text, swap);
        newest.set(source, written.is === 'good' ? text : '');
        if (loseBackend) backend.fail();
        if (!check && nth < script.length - 1) continue;
        await scene.pass(LONGEST_STEP_MS);
        for (const [seen, seenText] of newest) if (seenText !== '') good.set(seen, parsed(seenText));
        newest.clear();
        expect(loader.current).toEqual(expected());
      }
      await loader.close();
      expect([backend.subscriptions, clock.pending]).toEqual([0, 0]);
    }),
    { numRuns: rounds(8, 60) },
  );
});
