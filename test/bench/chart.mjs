/** Bar charts of the benchmarks, as SVG files in docs. They are written with `--write` only. */
import { writeFileSync } from 'node:fs';
import os from 'node:os';
import { fileURLToPath } from 'node:url';

import { scaleBand, scaleLinear, scaleLog } from 'd3-scale';

const WIDTH = 720;
const LABELS = 250;
const VALUES = 70;
const BAR = 26;
const HEAD = 34;
const FOOT = 24;

/** Where and when it was measured. */
const circumstances = () =>
  `${os.cpus().length} × ${os.cpus()[0]?.model}, Node ${process.version}, ${new Date().toISOString().slice(0, 10)}`;

/** What a reader gets by default, which is set off. Other settings of this library are bars like any other. */
const OURS = /^(resilient-watcher(, fs|\/\w+)?|atomicWriteFile)$/;

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const shown = (value) => (value < 10 ? value.toFixed(2) : value.toFixed(0));

/**
 * @param isLog for values of different orders of magnitude.
 * @param bars in the order they are drawn in
 */
export function barChart({ title, bars, isLog = false }) {
  const drawn = bars.filter(({ value }) => Number.isFinite(value) && value > 0);
  const values = drawn.map(({ value }) => value);
  const range = [0, WIDTH - LABELS - VALUES];
  const x = isLog
    ? scaleLog([Math.min(...values) / 2, Math.max(...values)], range)
    : scaleLinear([0, Math.max(...values)], range);
  const height = HEAD + BAR * drawn.length + FOOT;
  const y = scaleBand(
    drawn.map(({ label }) => label),
    [HEAD, height - FOOT],
  ).padding(0.2);
  const rows = drawn.map(({ label, value }) => {
    const top = y(label);
    const middle = top + y.bandwidth() / 2;
    const isOurs = OURS.test(label);
    return [
      `<text x="${LABELS - 8}" y="${middle}" text-anchor="end"${isOurs ? ' font-weight="bold"' : ''}>${escaped(label)}</text>`,
      `<rect x="${LABELS}" y="${top}" width="${x(value).toFixed(1)}" height="${y.bandwidth().toFixed(1)}" fill="${isOurs ? '#326ce5' : '#9aa5b1'}"/>`,
      `<text x="${(LABELS + x(value) + 6).toFixed(1)}" y="${middle}">${shown(value)}</text>`,
    ].join('\n');
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(title).replaceAll('"', '&quot;')}">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    '<g font-family="system-ui, sans-serif" font-size="12" fill="#1f2933" dominant-baseline="central">',
    `<text x="12" y="18" font-size="14" font-weight="bold">${escaped(title)}${isLog ? ' (logarithmic)' : ''}</text>`,
    ...rows,
    `<text x="12" y="${height - 11}" font-size="11" fill="#616e7c">${escaped(circumstances())}</text>`,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

/** Writes `docs/benchmark-<name>.svg`, if the benchmark was called with `--write`. */
export function writeChart(name, svg) {
  if (!process.argv.includes('--write')) return;
  writeFileSync(fileURLToPath(new URL(`../../docs/benchmark-${name}.svg`, import.meta.url)), svg);
}
