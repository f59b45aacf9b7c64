/** Each event of the public API is on a page, and so is the type of its payload in the API. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { pages, root, textOf } from './markdown.js';

const folder = join(root, 'test/package/api');
const reports = readdirSync(folder)
  .map((file) => readFileSync(join(folder, file), 'utf8'))
  .join('\n');

/** The events of each `…Events` interface: `name: [payload]`. */
const events = [...reports.matchAll(/^export interface (\w+Events)\b[^\n]*\{\n([\s\S]*?)^\}/gm)].flatMap(
  ([, owner = '', body = '']) =>
    [...body.matchAll(/^ {4}(\w+): \[([\s\S]*?)\];$/gm)].map(([, name = '', payload = '']) => ({
      event: `${owner}.${name}`,
      name,
      payload,
    })),
);

test('each event of a watcher is in the table of its page', () => {
  const names = events
    .filter(({ event }) => event.startsWith('ResilientWatcherEvents.'))
    .map(({ name }) => name);
  expect(names).toContain('restart');
  const page = textOf('docs/watching.md');
  expect(names.filter((name) => !page.includes(`\n| \`${name}\` |`))).toEqual([]);
});

test('each event is named on some page', () => {
  const text = pages.map(textOf).join('\n');
  expect(events.filter(({ name }) => !text.includes(`\`${name}\``)).map(({ event }) => event)).toEqual([]);
});

test('the types of the payloads are exported', () => {
  const exported = new Set(
    [...reports.matchAll(/^export (?:abstract )?(?:class|interface|type) (\w+)/gm)].map(([, name]) => name),
  );
  const unknown = events.flatMap(({ event, payload }) =>
    [...payload.matchAll(/(?::|\||<)\s*([A-Z]\w{2,})/g)]
      .filter(([, type]) => !exported.has(type ?? '') && type !== 'Error')
      .map(([, type = '']) => `${event}: ${type}`),
  );
  expect(unknown).toEqual([]);
});
