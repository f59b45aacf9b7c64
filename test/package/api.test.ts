/** The public API is the one that was reviewed. After a change on purpose: `UPDATE_API=1 npm run test:package`. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { apiReport, reported, reports } from './api-report.js';

const isUpdate = process.env['UPDATE_API'] === '1';

test.each(reported.map((one) => [one.specifier, one] as const))(
  'the exports of %s are those that were reviewed',
  (_, one) => {
    const path = join(reports, one.report);
    const report = apiReport(one);
    if (isUpdate) writeFileSync(path, report);
    expect(
      existsSync(path) ? readFileSync(path, 'utf8') : 'no report; run `UPDATE_API=1 npm run test:package`',
    ).toBe(report);
  },
);

test('each report is of an entry point', () => {
  const names = reported.map(({ report }) => report);
  const others = readdirSync(reports).filter((file) => !names.includes(file));
  if (isUpdate) for (const file of others) rmSync(join(reports, file));
  else expect(others).toEqual([]);
});
