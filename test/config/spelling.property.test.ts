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

test('an index of a list is no name: a variable that looks like one sets a key of its own', async () => {
  const values = { hosts: ['a', 'b'], ports: [{ number: 1 }] };
  const env = { APP_HOSTS0: 'x', APP_HOSTS_1: 'y', APP_PORTS_0_NUMBER: '2' };
  const loader = new ConfigLoader({ sources: [{ values }, { env: { prefix: 'APP_', env } }] });
  const loaded = await loader.load();
  await loader.close();
  expect(loaded).toMatchObject({ ...values, hosts0: 'x', hosts_1: 'y' });
});

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
