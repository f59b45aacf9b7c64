import fc from 'fast-check';
import { expect, test } from 'vitest';

import { ValueRedaction } from '../../src/config/value-redaction.js';

const values = { db: { password: 's3cret/with space', port: 5432 }, list: ['x'] };

test.each([
  ['Expected number but received "s3cret/with space"', 'Expected number but received "…/… …"'],
  ['the port 5432 is taken', 'the port … is taken'],
  ['at s3cret%2Fwith%20space', 'at …/… …'],
])('hides values in %j', (message, shown) => {
  expect(new ValueRedaction(values).message(message)).toBe(shown);
});

test('redacts before it cuts', () => {
  fc.assert(
    fc.property(fc.integer({ min: 280, max: 310 }), (length) => {
      const text = new ValueRedaction(values).message(`${'.'.repeat(length)}5432 and more`);
      expect(text).not.toContain('5');
    }),
  );
});

test('takes little time for a long message about many values', () => {
  const many = Array.from({ length: 20_000 }, (_, index) => `value-${index}`);
  expect(new ValueRedaction(many).message('word '.repeat(200_000)).length).toBeLessThan(310);
});

test('hides credentials that are not values', () => {
  const jwt = `eyJ${'a'.repeat(20)}.eyJ${'b'.repeat(20)}.${'c'.repeat(20)}`;
  expect(new ValueRedaction({}).message(`got ${jwt}`)).not.toContain('aaa');
});
