/** Each event of the public API is on a page, and so is the type of its payload in the API. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ReloadAction } from '@resilient-watcher/cli/action';
import { VolumePublisher } from '@resilient-watcher/csi';
import { PodSync } from '@resilient-watcher/sync-pods';
import { expect, test } from 'vitest';

import { EVENTS, type PointName } from '../../src/core/telemetry/telemetry-points.js';
import { telemetryOf } from '../../src/core/telemetry/telemetry-definitions.js';
import { METRICS, prometheusName } from '../../src/telemetry/metrics.js';
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

/** The rows of the tables of channels and metrics, with the names and the words in code of their last columns. */
const rowsOf = (page: string, prefix: RegExp) =>
  [...textOf(page).matchAll(/^\| `.*$/gm)]
    .map(([row]) => row.split('|'))
    .filter(([, first = '']) => prefix.test(first));
const codeIn = (text = ''): string[] =>
  [...text.matchAll(/`:?(?:resilient-watcher[.:])?([\w.]+)`/g)].map(([, name = '']) => name);

test('each point channel of the library is in the table of its page, with the fields of its messages', () => {
  const rows = rowsOf('docs/observability.md', /`resilient-watcher:/).map(([, names, , fields]) => ({
    names: codeIn(names),
    fields: codeIn(fields),
  }));
  const pointNames = Object.keys(EVENTS) as PointName[];
  expect(rows.flatMap(({ names }) => names).sort()).toEqual([...pointNames].sort());
  for (const { names, fields } of rows) {
    const published = pointNames
      .filter((name) => names.includes(name))
      .flatMap((name) => EVENTS[name].fields);
    expect({ names, fields: fields.sort() }).toEqual({ names, fields: published.sort() });
  }
});

test.each<[string, string, () => { readonly kind: string }]>([
  [
    'PodSync',
    'packages/sync-pods/docs/delivery.md',
    () => new PodSync({ client: { request: () => Promise.resolve(), async *lines() {} } }),
  ],
  [
    'ReloadAction',
    'packages/cli/docs/cli.md',
    () => new ReloadAction({ action: { name: 'nothing', run: () => Promise.resolve() } }),
  ],
  ['VolumePublisher', 'packages/csi/README.md', () => new VolumePublisher()],
])('each event, operation and metric that only a %s has is in the tables of its page', (_, page, create) => {
  const { events = {}, operations = {}, metrics = {} } = telemetryOf(create().kind) ?? {};
  const channels = rowsOf(page, /`resilient-watcher:/).map(([, name, , fields]) => [
    codeIn(name)[0],
    codeIn(fields),
  ]);
  expect(channels).toEqual(Object.entries(events).map(([name, { fields }]) => [name, fields]));
  expect(rowsOf(page, /`resilient-watcher\./).map(([, name]) => codeIn(name)[0])).toEqual(
    Object.keys(operations),
  );
  const documented = rowsOf(page, /_/).map(([, name, type = '', labels]) => [
    codeIn(name)[0],
    type.trim(),
    codeIn(labels),
  ]);
  for (const [name, metric] of Object.entries(metrics)) {
    const shown = prometheusName(name, metric).replace('resilient_watcher_', '');
    expect(documented).toContainEqual([shown, metric.kind, metric.labels]);
  }
});

test('each metric of the library is in the table of its page', () => {
  const documented = rowsOf('docs/observability.md', /`[a-z]+/).flatMap(([, names, type = '', labels]) =>
    codeIn(names).map((name) => [name, type.trim().replace(' 0/1', ''), codeIn(labels)]),
  );
  for (const [name, metric] of Object.entries(METRICS)) {
    const shown = prometheusName(name, metric).replace('resilient_watcher_', '');
    expect(documented).toContainEqual([shown, metric.kind, metric.labels]);
  }
});
