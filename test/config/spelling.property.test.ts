/** Which key a variable sets, for any keys that are alike. */
import fc from 'fast-check';
import { ConfigLoader } from 'resilient-watcher/config';
import { expect, test } from 'vitest';

const KEYS = ['maxConn', 'max-conn', 'max_conn', 'MAXCONN', 'maxconn', 'Max-Conn', 'max_Conn', 'other'];

const withoutDashes = (key: string): string => key.toLowerCase().replaceAll('-', '');
const folded = (key: string): string => withoutDashes(key).replaceAll('_', '');

/** As docs/config.md says it: the same spelling, or the only one that is alike; otherwise a key of its own. */
function meant(name: string, keys: readonly string[]): string {
  if (keys.includes(name)) return name;
  const alike = [withoutDashes, folded].map((fold) => keys.filter((key) => fold(key) === fold(name)));
  return alike.find(({ length }) => length === 1)?.[0] ?? name;
}

test('a variable sets the key that is spelled alike, and one of its own if several are', async () => {
  const keys = fc.uniqueArray(fc.constantFrom(...KEYS));
  await fc.assert(
    fc.asyncProperty(keys, fc.constantFrom('MAXCONN', 'MAX_CONN', 'OTHER'), async (known, variable) => {
      const values = Object.fromEntries(known.map((key) => [key, 'known']));
      const env = { [`APP_${variable}`]: 'set' };
      const loader = new ConfigLoader({ sources: [{ values }, { env: { prefix: 'APP_', env } }] });
      const loaded = await loader.load();
      await loader.close();
      expect(loaded).toEqual({ ...values, [meant(variable.toLowerCase(), known)]: 'set' });
    }),
  );
});
