import fc from 'fast-check';
import { expect, test } from 'vitest';

import { redact } from '../../src/core/options/redaction.js';
import { growsTooFast, textWith } from '../support/growth.js';
import { rounds } from '../support/rounds.js';

/** What makes a pattern examine the rest of the text. */
const BEGINNINGS = [
  '',
  'eyJ',
  'ZXlK',
  '://',
  '://a:',
  '-----BEGIN ',
  '-----BEGIN PRIVATE KEY-----',
  'Bearer ',
  'Basic+',
  'token',
  'token=',
  'token%3d',
  'token:',
  '"token": "',
  'Cookie',
  'Cookie:',
  'Set-Cookie: [',
  'Cookie: "',
  'hvs.',
];

/** What can be repeated without end. */
const FILLERS = [
  ...[' ', '\n', '\r\n', '\\', '"', '[', '=', ':', '/', '+', '-', '.', '%', '%25', '25', '%20', '%3d', '@'],
  ...['a', 'A', '1', 'PRIVATE KEY', '-----END ', '%65', ' \n', '[\n', '\\\\" '],
];

const ENDS = ['', '\n', '"', ' x', '%', '@', '-----'];

const KNOWN = ['hvs.CAESIJ/q+7=xyz~0123', 'a'.repeat(40)];
const redactText = (text: string): string => redact(text, KNOWN);

test.each(BEGINNINGS)(
  'what follows %j is redacted in time proportional to its length',
  { timeout: 120_000 },
  (beginning) => {
    const cases = FILLERS.flatMap((filler) => ['', ' x'].map((end) => [beginning, filler, end] as const));
    expect(cases.filter((parts) => growsTooFast(redactText, textWith(...parts)))).toEqual([]);
  },
);

test('a text of any parts is redacted in time proportional to its length', { timeout: 120_000 }, () => {
  const parts = fc.constantFrom(...BEGINNINGS, ...FILLERS);
  fc.assert(
    fc.property(
      fc.array(parts, { maxLength: 3 }),
      fc.array(parts, { minLength: 1, maxLength: 3 }).filter((filler) => filler.join('') !== ''),
      fc.constantFrom(...ENDS),
      (beginning, filler, end) =>
        !growsTooFast(redactText, textWith(beginning.join(''), filler.join(''), end)),
    ),
    { numRuns: rounds(30, 100) },
  );
});
