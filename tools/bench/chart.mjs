/** Bar charts of the benchmarks, as SVG files in docs. They are written with `--write` only. */
import { writeFileSync } from 'node:fs';
import os from 'node:os';
import { fileURLToPath } from 'node:url';

import { scaleLinear, scaleLog } from 'd3-scale';

/** As wide as the screen of a phone, so that the text is legible there. */
const WIDTH = 400;
const MARGIN = 12;
const VALUES = 52;
/** A label, and its bar below. */
const ROW = 36;
const BAR = 14;
const HEAD = 36;
const NOTE = 16;
const FOOT = 28;

/** Where and when it was measured. */
const circumstances = () =>
  `${os.cpus().length} × ${os.cpus()[0]?.model}, Node ${process.version}, ${new Date().toISOString().slice(0, 10)}`;

/** What a reader gets by default, which is set off. Other settings of this library are bars like any other. */
const OURS = /^(resilient-watcher(, fs|\/\w+)?|atomicWriteFile)$/;

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const shown = (value) => (value < 10 ? value.toFixed(2) : value.toFixed(0));

/**
 * @param title what was measured and, after a colon, which number is shown.
 * @param isLog for values of different orders of magnitude.
 * @param bars in the order they are drawn in
 */
export function barChart({ title, bars, isLog = false }) {
  const drawn = bars.filter(({ value }) => Number.isFinite(value) && value > 0);
  const values = drawn.map(({ value }) => value);
  const range = [0, WIDTH - MARGIN - VALUES];
  const x = isLog
    ? scaleLog([Math.min(...values) / 2, Math.max(...values)], range)
    : scaleLinear([0, Math.max(...values)], range);
  const lengths = drawn.map(({ label, value }) => ({ label, text: shown(value), length: x(value) }));
  return layout(title, isLog, lengths, circumstances());
}

/** @param bars each with its label, its value as text and its length. */
export function layout(title, isLog, bars, footer) {
  const [, what, number = ''] = /^(.*?)(?:: (.*))?$/.exec(title);
  const notes = lines(`${number}${isLog ? ' (logarithmic)' : ''}`);
  const head = HEAD + NOTE * notes.length;
  const height = head + ROW * bars.length + FOOT;
  const rows = bars.map(({ label, text, length }, index) => {
    const top = head + ROW * index;
    const isOurs = OURS.test(label);
    return [
      `<text x="${MARGIN}" y="${top + 8}"${isOurs ? ' font-weight="bold"' : ''}>${escaped(label)}</text>`,
      `<rect x="${MARGIN}" y="${top + 16}" width="${length.toFixed(1)}" height="${BAR}" fill="${isOurs ? '#326ce5' : '#9aa5b1'}"/>`,
      `<text x="${(MARGIN + length + 6).toFixed(1)}" y="${top + 16 + BAR / 2}">${text}</text>`,
    ].join('\n');
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(title).replaceAll('"', '&quot;')}">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    '<g font-family="system-ui, sans-serif" font-size="12" fill="#1f2933" dominant-baseline="central">',
    `<text x="${MARGIN}" y="16" font-size="14" font-weight="bold">${escaped(what)}</text>`,
    ...notes.map((text, index) => `<text x="${MARGIN}" y="${35 + NOTE * index}">${escaped(text)}</text>`),
    ...rows,
    `<text x="${MARGIN}" y="${height - 12}" font-size="11" fill="#616e7c">${escaped(footer)}</text>`,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

/** A text in lines that are not wider than the picture. */
function lines(text) {
  return text.match(/\S.{0,54}(?=\s|$)/g) ?? [];
}

/** Writes `docs/internals/benchmark-<name>.svg`, if the benchmark was called with `--write`. */
export function writeChart(name, svg) {
  if (!process.argv.includes('--write')) return;
  writeFileSync(fileURLToPath(new URL(`../../docs/internals/benchmark-${name}.svg`, import.meta.url)), svg);
}
