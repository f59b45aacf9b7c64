/** The public API is the one that was reviewed. After a change on purpose: `UPDATE_API=1 npm run test:package`. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

import { expect, test } from 'vitest';

import { apiReport, reportPath } from './api-report.js';
import { entryPoints } from './application.js';

const isUpdate = process.env['UPDATE_API'] === '1';

// What is internal is no API.
test.each(entryPoints.filter((name) => name !== 'resilient-watcher/internal'))(
  'the exports of %s are those that were reviewed',
  (entryPoint) => {
    const path = reportPath(entryPoint);
    const report = apiReport(entryPoint);
    if (isUpdate) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, report);
    }
    expect(
      existsSync(path) ? readFileSync(path, 'utf8') : 'no report; run `UPDATE_API=1 npm run test:package`',
    ).toBe(report);
  },
);
