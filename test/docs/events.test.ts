/** Each event of the public API is on a page, and so is the type of its payload in the API. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { pointNames } from '../../src/core/telemetry.js';
import { fieldsOf } from '../../src/core/telemetry-points.js';
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

test('each point channel is in the table of its page, with the fields of its messages', () => {
  const rows = [...textOf('docs/observability.md').matchAll(/^\| `resilient-watcher:.*$/gm)].map(([row]) => {
    const [, names = '', , fields = ''] = row.split('|');
    return {
      names: [...names.matchAll(/:(\w+)`/g)].map(([, name = '']) => name),
      fields: [...fields.matchAll(/`(\w+)`/g)].map(([, field = '']) => field),
    };
  });
  expect(rows.flatMap(({ names }) => names).sort()).toEqual([...pointNames].sort());
  for (const { names, fields } of rows) {
    const published = pointNames.filter((name) => names.includes(name)).flatMap((name) => fieldsOf(name));
    expect({ names, fields: fields.sort() }).toEqual({ names, fields: published.sort() });
  }
});
