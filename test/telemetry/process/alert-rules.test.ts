/** The alert rules of `monitoring/` and of the manifest for the Prometheus Operator, as Prometheus understands them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';

import { manifestPath } from '../../support/manifest-files.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';
import { skip } from '../../support/namespace.js';

test('promtool accepts the rules, and their own tests pass', (context) => {
  if (spawnSync('promtool', ['--version']).error) skip(context, '`promtool` is not on the PATH');
  const run = (command: string, file: string): string => {
    const path = fileURLToPath(new URL(`../../../monitoring/prometheus/${file}`, import.meta.url));
    return execFileSync('promtool', [command, 'rules', path], { encoding: 'utf8' });
  };
  const { spec } = parse(readFileSync(manifestPath('prometheus-rule.yaml'), 'utf8')) as { spec: unknown };
  const ofOperator = join(temporaryDirectory(), 'rules.yaml');
  writeFileSync(ofOperator, stringify(spec));
  expect(execFileSync('promtool', ['check', 'rules', ofOperator], { encoding: 'utf8' })).toContain('SUCCESS');
  expect(run('check', 'rules.yaml')).toContain('SUCCESS');
  expect(run('test', 'rules.test.yaml')).toContain('SUCCESS');
});
