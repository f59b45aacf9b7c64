import { scaleLinear, scaleSymlog } from 'd3-scale';
import { line } from 'd3-shape';

const WIDTH = 700;
const PANEL = 130;
const LEFT = 60;
const TOP = 64;
const GAP = 46;

/** How many minutes a point of the picture is about, which is as wide as a pixel and a half. */
const MINUTES = 5;

/** Requests per second over time as SVG: one panel for each series, the highest second of each five minutes. */
export function plotRequests({ title, hours, marks, series }) {
  const height = TOP + series.length * (PANEL + GAP) + 10;
  const highest = Math.max(...series.flatMap(({ perSecond }) => peaks(perSecond)));
  const x = scaleLinear([0, hours], [LEFT, WIDTH - 20]);
  const y = scaleSymlog([0, highest], [PANEL, 0]);
  const panels = series.map(({ name, note, perSecond }, index) => {
    const outline = line()
      .x((_, index) => round(x((index * MINUTES) / 60)))
      .y((rate) => round(y(rate)));
    const shape = (rates) => `${outline(rates)}V${PANEL}H${LEFT}Z`;
    const ticks = [0, 1, 10, 100, 1000].filter((tick) => tick <= highest);
    const parts = [
      `<text class="name" x="${LEFT}" y="-8">${name} <tspan class="note">${note}</tspan></text>`,
      ...ticks.map(
        (tick) =>
          `<line class="grid" x1="${LEFT}" x2="${WIDTH - 20}" y1="${round(y(tick))}" y2="${round(y(tick))}"/>` +
          `<text class="tick" x="${LEFT - 6}" y="${round(y(tick)) + 4}" text-anchor="end">${tick}</text>`,
      ),
      ...marks.map(
        ({ from, to }) =>
          `<rect class="mark" x="${round(x(from))}" width="${round(Math.max(1.5, x(to) - x(from)))}" height="${PANEL}"/>`,
      ),
      `<path class="rate" d="${shape(peaks(perSecond))}"/>`,
      ...x
        .ticks(12)
        .map(
          (hour) =>
            `<text class="tick" x="${round(x(hour))}" y="${PANEL + 16}" text-anchor="middle">${hour} h</text>`,
        ),
    ];
    return `<g transform="translate(0 ${TOP + index * (PANEL + GAP)})">\n${parts.join('\n')}\n</g>`;
  });
  const labels = marks.map(
    ({ name, from }) =>
      `<text class="note" x="${round(x(from))}" y="${TOP - 26}" text-anchor="middle">${name}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">
<style>
  .background { fill: #fff } .title { font-size: 15px; font-weight: 600 } .name { font-weight: 600 }
  .note { fill: #555; font-weight: 400 } .tick { fill: #555; font-size: 11px }
  .grid { stroke: #ddd } .mark { fill: #f2b8a0; opacity: .7 } .rate { fill: #2f6db3 }
</style>
<rect class="background" width="${WIDTH}" height="${height}"/>
<text class="title" x="${LEFT}" y="20">${title}</text>
${labels.join('\n')}
${panels.join('\n')}
</svg>
`;
}

function peaks(perSecond) {
  const seconds = MINUTES * 60;
  return Array.from({ length: perSecond.length / seconds }, (_, index) =>
    Math.max(...perSecond.subarray(index * seconds, (index + 1) * seconds)),
  );
}

function round(value) {
  return Math.round(value * 10) / 10;
}
