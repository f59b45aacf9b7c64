/** The demo as a user sees it, on the built package. */
import { expect, test } from 'vitest';

import { startExample } from '../support/program.js';

test('the demo keeps every promise it prints, and measures what a rotation of the signing key costs', async () => {
  const program = startExample('demo.mjs');
  expect((await program.finished()).code, program.output).toBe(0);
  const text = program.output;
  expect(text).not.toContain('✗');
  expect(text).toContain('allow: heidi, found by polling');
  expect(text).toContain('401: the token in the kubeconfig is worthless');
  expect(text).toMatch(/✓ +\d+ ms {2}seen \(file\), token requested, kubeconfig rewritten: it works again/);
  expect(text).toContain('the kubeconfig of the timer: still 401');
  expect(text).toMatch(/No valid token for \d+\.\d\d s: [1-9]\d* requests got 401\./);
  // A quarter to a half of the day that the token lives.
  const [, hours] = /With only a timer: ([\d.]+) h/.exec(text) ?? [];
  expect(Number(hours)).toBeGreaterThan(5.9);
  expect(Number(hours)).toBeLessThan(12.1);
  expect(text.trimEnd()).toMatch(/Nothing was missed\.$/);
  expect(text).not.toContain('eyJ');
});
