/**
 * Draws docs/observability.svg, and the same for phones: the panels of monitoring/grafana/dashboard.json, with data of a real
 * Prometheus (which must be installed) that scraped this process during two minutes of incidents.
 *
 *     npm run build && node tools/pictures/dashboard.mjs
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
import { TlsFiles } from 'resilient-watcher/tls';
import { generate } from 'selfsigned';

const SECONDS = 120;
/** A window of the dashboard's 5 minutes would show nothing in two minutes. */
const WINDOW = '15s';
const PORT = 19_090;

/** In the size in which pages show it, so that its text is as large as theirs. */
const PANEL = { width: 350, height: 196 };
const PLOT = { left: 58, right: 338, top: 34, bottom: 116 };
const COLORS = ['#3274d9', '#e0752d', '#37872d', '#c4162a', '#8f3bb8', '#b78a00', '#008c95', '#7a7a7a'];
/** The lines of a legend, of which each has a series. */
const LEGEND = 4;

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
const { panels } = JSON.parse(readFileSync(join(root, 'monitoring/grafana/dashboard.json'), 'utf8'));
const filled = [];
for (const panel of panels) {
  const series = await seriesOf(panel);
  // Some have nothing to show in two minutes.
  if (series.length > 0) filled.push({ panel, series });
}
for (const [file, columns] of [
  ['observability.svg', 2],
  ['observability-narrow.svg', 1],
]) {
  writeFileSync(join(root, 'docs', file), picture(filled, columns));
}
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
  const pair = new KubeletVolume(join(directory, 'tls'));
  const renew = async () => {
    const notAfterDate = new Date(Date.now() + 2 * 3_600_000);
    const { cert, private: key } = await generate(undefined, {
      keyType: 'ec',
      algorithm: 'sha256',
      notAfterDate,
    });
    pair.publish({ 'tls.crt': cert, 'tls.key': key });
  };
  await renew();
  const backend = new ScriptedBackend();
  const tokens = new FakeTokenClient();
  const parts = [
    new ResilientWatcher(volume.path('policy.yaml'), { backend: 'fs' }),
    new ResilientWatcher(volume.path('routes.yaml'), { backend }),
    new ConfigLoader({ name: 'app', sources: [{ provider: new FileProvider(volume.path('app.json')) }] }),
    new TlsFiles(join(directory, 'tls'), { name: 'tls' }),
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

function picture(filled, columns) {
  const [width, height] = [columns * PANEL.width, Math.ceil(filled.length / columns) * PANEL.height];
  const drawn = filled.map(({ panel, series }, index) => {
    const [x, y] = [(index % columns) * PANEL.width, Math.floor(index / columns) * PANEL.height];
    return `<g transform="translate(${x} ${y})">${draw(panel, series)}</g>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="The panels of the dashboard during ${SECONDS} seconds of incidents" font-family="system-ui, sans-serif" font-size="12" fill="#1f2933">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...drawn,
    '</svg>',
    '',
  ].join('\n');
}

function draw({ title, fieldConfig }, series) {
  const values = series.flatMap((one) => one.values.map(([, value]) => value));
  const across = scaleLinear([began, ended], [PLOT.left, PLOT.right]);
  // A series of zeros has an axis, too.
  const highest = Math.max(...values, 0) || 1;
  const [factor, unit] = scaleOf(fieldConfig.defaults.unit, highest);
  const range = [Math.min(...values, 0), highest].map((value) => value / factor);
  const up = scaleLinear(range, [PLOT.bottom, PLOT.top]).nice(4);
  const path = line(
    ([at]) => across(at).toFixed(1),
    ([, value]) => up(value / factor).toFixed(1),
  );
  const grid = up.ticks(4).map((tick) => {
    const y = up(tick).toFixed(1);
    const label = `<text x="${PLOT.left - 6}" y="${y}" text-anchor="end" dominant-baseline="central" fill="#616e7c">${tick === 0 ? 0 : `${Number(tick.toPrecision(3))} ${unit}`.trim()}</text>`;
    return `<path d="M${PLOT.left} ${y}H${PLOT.right}" stroke="#e4e7eb"/>${label}`;
  });
  const times = [0, 1 / 2, 1].map((part) => {
    const anchor = { 0: 'start', 1: 'end' }[part] ?? 'middle';
    const x = PLOT.left + part * (PLOT.right - PLOT.left);
    return `<text x="${x}" y="${PLOT.bottom + 14}" text-anchor="${anchor}" fill="#616e7c">${part * SECONDS} s</text>`;
  });
  const color = (nth) => COLORS[nth % COLORS.length];
  const lines = series.map(
    (one, nth) => `<path d="${path(one.values)}" fill="none" stroke="${color(nth)}" stroke-width="1.5"/>`,
  );
  const isShort = series.every(({ name }) => name.length <= 22);
  const named = series.length <= LEGEND * (isShort ? 2 : 1) ? series.length : LEGEND * (isShort ? 2 : 1) - 1;
  const entries = [
    ...series.slice(0, named).map(({ name }, nth) => ({ text: `■ ${name}`, fill: color(nth) })),
    ...(named < series.length ? [{ text: `and ${series.length - named} more`, fill: '#616e7c' }] : []),
  ];
  const legend = entries.map(({ text, fill }, nth) => {
    const [x, row] = isShort ? [12 + (nth % 2) * 166, Math.floor(nth / 2)] : [12, nth];
    return `<text x="${x}" y="${PLOT.bottom + 32 + row * 14}" fill="${fill}">${escaped(text)}</text>`;
  });
  const heading = `<text x="12" y="20" font-weight="bold">${escaped(title)}</text>`;
  return [heading, ...grid, ...times, ...lines, ...legend].join('');
}

/** In which unit an axis is drawn whose largest number is `highest`. */
function scaleOf(unit, highest) {
  if (unit !== 's') return [1, ''];
  const scales = [
    [86_400, 86_400, 'd'],
    [3_600, 3_600, 'h'],
    [300, 60, 'min'],
    [1, 1, 's'],
    [0, 0.001, 'ms'],
  ];
  return scales.find(([from]) => highest >= from).slice(1);
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
