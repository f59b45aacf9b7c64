/** The alert rules of `monitoring/`, as Prometheus understands them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { expect, test } from 'vitest';

import { skip } from '../../support/namespace.js';

test('promtool accepts the rules, and their own tests pass', (context) => {
  if (spawnSync('promtool', ['--version']).error) skip(context, '`promtool` is not on the PATH');
  const run = (command: string, file: string): string => {
    const path = fileURLToPath(new URL(`../../../monitoring/prometheus/${file}`, import.meta.url));
    return execFileSync('promtool', [command, 'rules', path], { encoding: 'utf8' });
  };
  expect(run('check', 'rules.yaml')).toContain('SUCCESS');
  expect(run('test', 'rules.test.yaml')).toContain('SUCCESS');
});
