/**
 * Draws docs/observability.svg: the panels of deploy/grafana/dashboard.json, with data of a real Prometheus (which must
 * be installed) that scraped this process during two minutes of incidents.
 *
 *     npm run build && node test/telemetry/draw-dashboard.mjs
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { scaleLinear } from 'd3-scale';
import { line } from 'd3-shape';
import client from 'prom-client';
import { atomicWriteFile, BackendError, ResilientWatcher, TokenRefresher } from 'resilient-watcher';
import { ConfigLoader, FileProvider } from 'resilient-watcher/config';
import { collectMetrics } from 'resilient-watcher/prometheus';
import { FakeTokenClient, KubeletVolume, ScriptedBackend } from 'resilient-watcher/testing';

const SECONDS = 120;
/** A window of the dashboard's 5 minutes would show nothing in two minutes. */
const WINDOW = '15s';
const PORT = 19_090;

const root = fileURLToPath(new URL('../../', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'dashboard-'));
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1_000));

collectMetrics({ client, registry: client.register });
const server = createServer(async (_request, response) => {
  response.setHeader('content-type', client.register.contentType).end(await client.register.metrics());
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
writeFileSync(
  join(directory, 'prometheus.yml'),
  JSON.stringify({
    global: { scrape_interval: '1s' },
    scrape_configs: [
      { job_name: 'pod', static_configs: [{ targets: [`127.0.0.1:${server.address().port}`] }] },
    ],
  }),
);
const prometheus = spawn(
  'prometheus',
  [
    `--config.file=${directory}/prometheus.yml`,
    `--storage.tsdb.path=${directory}/data`,
    `--web.listen-address=127.0.0.1:${PORT}`,
  ],
  { stdio: 'ignore' },
);
await sleep(3);
const began = Date.now() / 1_000;
await incidents();
const ended = Date.now() / 1_000;
const { panels } = JSON.parse(readFileSync(join(root, 'deploy/grafana/dashboard.json'), 'utf8'));
const drawn = [];
for (const panel of panels) drawn.push(draw(panel, await seriesOf(panel)));
const WIDTH = 1_200;
const HEIGHT = 40 * 26 + 30;
writeFileSync(
  join(root, 'docs/observability.svg'),
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="11">
<rect width="100%" height="100%" fill="#f4f5f5"/>
<text x="12" y="19" font-size="13">resilient-watcher: ${SECONDS} s with a lost backend, a rejected configuration and a failing token server (rates over ${WINDOW})</text>
${drawn.join('\n')}
</svg>
`,
);
prometheus.kill();
rmSync(directory, { recursive: true, force: true });
process.exit(0);

/** Something to see in every panel. */
async function incidents() {
  const volume = new KubeletVolume(join(directory, 'config'));
  let serial = 0;
  let app = '{"port":1}';
  const publish = () =>
    volume.publish({
      'policy.yaml': `serial: ${(serial += 1)}`,
      'app.json': app,
      'routes.yaml': `${serial}`,
    });
  publish();
  const backend = new ScriptedBackend();
  const tokens = new FakeTokenClient();
  const parts = [
    new ResilientWatcher(volume.path('policy.yaml'), { backend: 'fs' }),
    new ResilientWatcher(volume.path('routes.yaml'), { backend }),
    new ConfigLoader({ name: 'app', sources: [{ provider: new FileProvider(volume.path('app.json')) }] }),
    new TokenRefresher({
      name: 'token',
      client: tokens,
      tokenFile: false,
      refreshIntervalMs: 12_000,
      retryDelayMs: 3_000,
      sinks: [function vault() {}],
    }),
  ];
  await Promise.all(parts.map((part) => part.start()));
  const down = new BackendError('ERR_BACKEND_LIMIT', 'scripted', 'No watch is left');
  for (let second = 0; second < SECONDS; second += 1) {
    if (second === 30) {
      backend.refuse(...Array.from({ length: 1_000 }, () => down));
      backend.fail(down);
    }
    if (second === 55) app = '{"port":';
    if (second === 60) backend.accept();
    if (second === 70) tokens.otherwise = { error: FakeTokenClient.tooManyRequests(2_000) };
    if (second === 85) app = '{"port":1}';
    if (second === 95) tokens.otherwise = {};
    if (second % 5 === 0) publish();
    if (second % 3 === 0) await atomicWriteFile(join(directory, 'state.json'), `${second}`);
    await sleep(1);
  }
}

/** What Prometheus answers to the panel's own expressions. */
async function seriesOf({ targets }) {
  const all = [];
  for (const { expr, legendFormat } of targets) {
    const query = expr.replaceAll('$instance', '.*').replaceAll('[5m]', `[${WINDOW}]`);
    const parameters = new URLSearchParams({ query, start: began, end: ended, step: 1 });
    const answer = await fetch(`http://127.0.0.1:${PORT}/api/v1/query_range?${parameters}`);
    const { data, error } = await answer.json();
    if (!data) throw new Error(`${query}: ${error}`);
    for (const { metric, values } of data.result) {
      const name = legendFormat.replace(/\{\{(\w+)\}\}/g, (_match, label) => metric[label] ?? '');
      all.push({
        name,
        values: values.map(([at, value]) => [at, Number(value)]).filter(([, v]) => Number.isFinite(v)),
      });
    }
  }
  return all.filter(({ values }) => values.length > 0);
}

function draw({ title, gridPos, fieldConfig }, series) {
  const [x, y, width, height] = [
    gridPos.x * 50 + 4,
    gridPos.y * 26 + 30,
    gridPos.w * 50 - 8,
    gridPos.h * 26 - 8,
  ];
  const colors = ['#3274d9', '#e0752d', '#37872d', '#c4162a', '#8f3bb8', '#b78a00', '#008c95', '#7a7a7a'];
  const highest = Math.max(...series.flatMap(({ values }) => values.map(([, value]) => value)), 1e-6);
  const lowest = Math.min(...series.flatMap(({ values }) => values.map(([, value]) => value)), 0);
  const across = scaleLinear([began, ended], [44, width - 8]);
  const up = scaleLinear([lowest, highest], [height - 62, 30]).nice(4);
  const path = line(
    ([at]) => across(at),
    ([, value]) => up(value),
  );
  const grid = up
    .ticks(4)
    .map(
      (tick) =>
        `<path d="M44 ${up(tick)}H${width - 8}" stroke="#e4e7e7"/><text x="40" y="${up(tick) + 4}" text-anchor="end" fill="#666">${shown(tick, fieldConfig.defaults.unit)}</text>`,
    );
  const lines = series.map(
    ({ values }, nth) =>
      `<path d="${path(values)}" fill="none" stroke="${colors[nth % colors.length]}" stroke-width="1.5"/>`,
  );
  const legend = series
    .slice(0, 6)
    .map(
      ({ name }, nth) =>
        `<text x="${10 + (nth % 2) * (width / 2)}" y="${height - 40 + Math.floor(nth / 2) * 14}" fill="${colors[nth % colors.length]}">■ ${escaped(name).slice(0, Math.floor(width / 13))}</text>`,
    );
  const empty =
    series.length === 0
      ? `<text x="${width / 2}" y="${height / 2}" text-anchor="middle" fill="#888">none</text>`
      : '';
  return `<g transform="translate(${x} ${y})"><rect width="${width}" height="${height}" fill="#fff" stroke="#ddd"/><text x="10" y="18" font-weight="bold">${escaped(title)}</text>${grid.join('')}${lines.join('')}${legend.join('')}${empty}</g>`;
}

function shown(value, unit) {
  if (unit !== 's') return Number(value.toPrecision(3));
  return value !== 0 && Math.abs(value) < 1
    ? `${Number((value * 1_000).toPrecision(3))} ms`
    : `${Number(value.toPrecision(3))} s`;
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
