/** The tables of options, flags, exit codes and findings on the pages are those of the code. */
import { Command } from 'commander';
import { expect, test } from 'vitest';

import { EXIT } from '../../packages/cli/src/exit-code.js';
import { COMMANDS } from '../../packages/cli/src/program.js';
import { resolveReloadOptions } from '../../packages/cli/src/action/reload-options.js';
import { ENVIRONMENT_OPTIONS } from '../../src/config/environment.js';
import { resolveRefresherOptions } from '../../src/token/refresher-options.js';
import { resolveWatcherOptions } from '../../src/watch/watcher-options.js';
import { OPTIONS as WRITE_OPTIONS } from '../../src/write/write-options.js';
import { textOf } from './markdown.js';

const CLI = 'packages/cli/docs/cli.md';

const codeIn = (text = ''): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);

/** The rows of the table whose header begins so, without the spaces around each cell. */
function rowsOf(page: string, header: string): string[][] {
  const [, table] = textOf(page).split(`\n${header}`);
  const [, , ...lines] = table?.split('\n') ?? [];
  const end = lines.findIndex((line) => !line.startsWith('|'));
  return lines.slice(0, end).map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  );
}

/** The numbers and words of a default as a page has them: `10,000`, `1 MiB`, `'quarter'`. */
function defaultsIn(cell = ''): unknown[] {
  return cell.split(/ and |, /).map((word) => {
    const [, digits = '', unit] = /^([\d,]+)( MiB)?$/.exec(word) ?? [];
    if (digits !== '') return Number(digits.replaceAll(',', '')) * (unit === undefined ? 1 : 2 ** 20);
    return codeIn(word)[0] ?? word;
  });
}

const inCode = (value: unknown): unknown => {
  if (typeof value === 'string') return `'${value}'`;
  return typeof value === 'number' ? value : JSON.stringify(value);
};

const fallbacksOf = (options: Readonly<Record<string, { readonly fallback: unknown }>>) =>
  Object.fromEntries(Object.entries(options).map(([name, { fallback }]) => [name, fallback]));

const client = { requestToken: () => Promise.reject(new Error('not asked')) };

test.each<[string, string, Readonly<Record<string, unknown>>]>([
  ['docs/watching.md', '| option |', resolveWatcherOptions(undefined, { isGroup: false }).options],
  [
    'docs/tokens.md',
    '| `TokenRefresher` option |',
    { ...resolveRefresherOptions({ client }), persistent: undefined },
  ],
  ['docs/atomic-writes.md', '| option |', fallbacksOf(WRITE_OPTIONS)],
  ['docs/config.md', '| option |', fallbacksOf(ENVIRONMENT_OPTIONS)],
])('%s has each option, with its default', (page, header, options) => {
  const rows = rowsOf(page, header);
  // A refresher keeps what it has made of two of its options.
  const names = Object.keys(options).filter((name) => !['retryDelays', 'name'].includes(name));
  const documented = rows.flatMap(([cell]) => codeIn(cell));
  expect(documented.filter((name) => name !== 'name').sort()).toEqual(names.sort());
  for (const [cell, ...others] of rows) {
    const said = defaultsIn(page === 'docs/config.md' ? others[1] : others[0]);
    codeIn(cell).forEach((name, index) => {
      const value = options[name];
      const isPlain = ['number', 'string', 'boolean'].includes(typeof value) && name !== 'tokenFile';
      if (isPlain) expect([name, said[index]]).toEqual([name, inCode(value)]);
    });
  }
});

test('each number that a page gives for an option of a ReloadAction is its default', () => {
  const options = resolveReloadOptions({ action: { name: 'none', run: () => Promise.resolve() } });
  expect(textOf(CLI)).toContain(`(${options.timeoutMs / 1_000} s; \`timeoutMs\` of a \`ReloadAction\`)`);
  expect(textOf(CLI)).toContain(`\`stopTimeoutMs\` (${options.stopTimeoutMs / 1_000} s) of the`);
});

test('each flag has a row, with its commands and its default, and each row is of such flags', async () => {
  const flags: { flag: string; of: string; fallback: string | undefined }[] = [];
  for (const [of, load] of Object.entries(COMMANDS)) {
    const command = new Command(of);
    (await load()).describe(command);
    for (const { long, description } of command.options) {
      const [, fallback] = /\(default: (.+)\)$/.exec(description) ?? [];
      flags.push({ flag: long ?? '', of, fallback });
    }
  }
  const rows = rowsOf(CLI, '| flag |').filter(([, of]) => of !== 'all');
  const said = rows.flatMap(([names, of]) =>
    codeIn(names).flatMap((flag) => codeIn(of).map((command) => `${command} ${flag}`)),
  );
  expect(said.sort()).toEqual(flags.map(({ flag, of }) => `${of} ${flag}`).sort());
  for (const { flag, of, fallback } of flags) {
    if (fallback === undefined) continue;
    const row = rows.find(
      ([names, commands]) => codeIn(names).includes(flag) && codeIn(commands).includes(of),
    );
    expect([flag, row?.[2]]).toEqual([flag, expect.stringContaining(fallback)]);
  }
});

test('each exit code has a row', () => {
  const codes = rowsOf(CLI, '| code |').flatMap(([codes = '']) => codes.split(', '));
  expect(codes).toEqual([...Object.values(EXIT).map(String), '128 + n']);
});

test('each finding of doctor has a row', () => {
  const sources = ['doctor', 'manifests'].map((folder) => textOf(`packages/cli/src/${folder}/finding.ts`));
  const ids = sources.flatMap((text) => [...text.matchAll(/^ {2}([A-Z_]+): \{$/gm)].map(([, id]) => id));
  const documented = rowsOf(CLI, '| id |').flatMap(([cell]) => codeIn(cell));
  expect(new Set(ids.filter((id) => !documented.includes(id ?? '')))).toEqual(new Set());
  expect(ids.length).toBeGreaterThan(20);
});
