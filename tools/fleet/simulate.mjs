// node tools/bench/run.mjs fleet: what a fleet of refreshers asks of one API server, for three ways to choose the times.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';

import { story } from './fleet.mjs';
import { plotRequests } from './plot.mjs';

const HOUR = 3_600_000;

const fleets = [
  {
    name: 'this library',
    note: 'a quarter of the lifetime plus jitter; retries 5–10 s growing to 60 s',
    options: {},
  },
  {
    name: 'no jitter',
    note: 'the same without jitter',
    options: { jitter: false, wakeJitterMs: 0 },
  },
  {
    name: 'flat retry',
    note: 'the same schedule; every retry after 5–10 s',
    options: { maxRetryDelayMs: 10_000 },
  },
];

function percentile(values, share) {
  const sorted = Array.from(values).sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

function between(perSecond, fromMs, toMs) {
  return perSecond.subarray(Math.floor(fromMs / 1000), Math.floor(toMs / 1000));
}

function rates(perSecond) {
  const mean = perSecond.reduce((sum, rate) => sum + rate, 0) / perSecond.length;
  return {
    mean: Number(mean.toFixed(2)),
    p99: percentile(perSecond, 0.99),
    peak: perSecond.reduce((most, rate) => Math.max(most, rate)),
  };
}

const began = performance.now();
console.log(
  `${story.nodes} refreshers, ${story.hours} h; signing key rotated at ${story.rotationMs / HOUR} h, ` +
    `API server out for ${story.outageLastsMs / 60_000} min at ${story.outageMs / HOUR} h\n`,
);

async function liveThrough(workerData) {
  // Most of what it makes lives for a moment; a large nursery keeps that out of the old generation.
  const resourceLimits = { maxYoungGenerationSizeMb: 64 };
  const worker = new Worker(new URL('fleet.mjs', import.meta.url), { workerData, resourceLimits });
  const [lived] = await once(worker, 'message');
  return lived;
}

const lives = await Promise.all(fleets.map(({ options }) => liveThrough(options)));
const series = [];
for (const [index, { name, note }] of fleets.entries()) {
  const { perSecond, recoveredMs } = lives[index];
  const { rotationMs, outageMs, outageLastsMs } = story;
  console.log(`${name}: ${note}`);
  console.table({
    'all 48 h': rates(perSecond),
    'quiet hours (2 h to 14 h)': rates(between(perSecond, 2 * HOUR, rotationMs)),
    'the hour after the rotation': rates(between(perSecond, rotationMs, rotationMs + HOUR)),
    'the outage': rates(between(perSecond, outageMs, outageMs + outageLastsMs)),
    'the 5 min after it': rates(
      between(perSecond, outageMs + outageLastsMs, outageMs + outageLastsMs + 300_000),
    ),
  });
  const recovered = `${recoveredMs.length} of ${story.nodes} nodes`;
  const [half, last] = [percentile(recoveredMs, 0.5), recoveredMs.at(-1)].map((ms) =>
    (ms / 60_000).toFixed(1),
  );
  console.log(
    `after the rotation ${recovered} had a good token again, half within ${half} min, all within ${last} min\n`,
  );
  series.push({ name, note, perSecond });
}

const file = new URL('../../docs/fleet.svg', import.meta.url);
writeFileSync(
  file,
  plotRequests({
    title: `Requests per second of ${story.nodes} refreshers (highest second of each 5 minutes, logarithmic)`,
    hours: story.hours,
    marks: [
      { name: 'signing key rotated', from: story.rotationMs / HOUR, to: story.rotationMs / HOUR },
      {
        name: 'API server out',
        from: story.outageMs / HOUR,
        to: (story.outageMs + story.outageLastsMs) / HOUR,
      },
    ],
    series,
  }),
);
console.log(`docs/fleet.svg written; ${((performance.now() - began) / 1000).toFixed(0)} s`);
