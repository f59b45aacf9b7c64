/**
 * Runs the suite against every watcher of contestants.mjs.
 *
 *     npm run scoreboard                 all of them, about half an hour; writes docs/scoreboard.md and its pictures
 *     npm run scoreboard -- Node         those of one language, and writes nothing; ends with 1 if this library or the
 *                                        reference reader is not perfect
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { fileURLToPath } from 'node:url';

import contestants from './contestants.mjs';
import { page, picture } from './scoreboard-page.mjs';
import { prepare } from './toolchains.mjs';

/** At a time. They wait most of the time. */
const JOBS = 16;
const cli = fileURLToPath(new URL('bin.js', import.meta.url));
const [only] = process.argv.slice(2);

/** Resolves to what the program prints, one JSON document a line. */
function conformance(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [cli, '--format', 'json', ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk) => (output += chunk));
    child.on('error', reject);
    child.on('close', () => {
      const documents = output.split('\n').filter(Boolean);
      resolve(documents.map((document) => JSON.parse(document)));
    });
  });
}

async function play(contestant) {
  const {
    language,
    name,
    version,
    configuration,
    says,
    groups = [],
    advice,
    command,
    mustBePerfect,
  } = contestant;
  const chosen = groups.flatMap((group) => ['--only', group]);
  // What others miss is waited for only if it is written down.
  if (only !== undefined && !mustBePerfect) chosen.push('--timeout', '2000');
  const documents = await conformance([...chosen, '--jobs', String(JOBS), '--', ...command]);
  const total = documents.find(({ event }) => event === 'total');
  if (!total) throw new Error(`${name}: ${JSON.stringify(documents.at(-1))}`);
  const reports = documents.filter(({ event }) => event === 'sequence');
  console.log(`${name}, ${configuration}: ${total.right} of ${total.sequences - total.skipped}`);
  const sequences = reports.map(({ name, group, verdict, says }) => ({
    ...{ name, group, verdict },
    ...(verdict !== 'right' && { says: says.replace(/conformance-\w+/g, 'conformance') }),
  }));
  const { medianMs, p99Ms } = total;
  return { language, name, version, configuration, says, medianMs, p99Ms, sequences };
}

const languages = [...new Set(contestants.map(({ language }) => language))].filter(
  (language) => only === undefined || language === only,
);
const toolchains = prepare(languages);
const [{ sequences: list }] = await conformance(['--list']);
const results = [];
for (const contestant of contestants.filter(({ language }) => languages.includes(language))) {
  if (toolchains[contestant.language].reason === undefined) results.push(await play(contestant));
  else console.log(`${contestant.name}: skipped, ${toolchains[contestant.language].reason}`);
}

const imperfect = contestants
  .filter(({ mustBePerfect }) => mustBePerfect)
  .flatMap(({ name }) => results.filter((result) => result.name === name))
  .flatMap(({ name, sequences }) => sequences.map((sequence) => ({ contestant: name, ...sequence })))
  .filter(({ verdict }) => verdict !== 'right' && verdict !== 'skipped');
for (const { contestant, name, verdict, says } of imperfect) {
  console.error(`${contestant} has to be perfect: ${name}: ${verdict}, ${says}`);
  process.exitCode = 1;
}

if (only === undefined) {
  const write = (file, text) => writeFileSync(fileURLToPath(new URL(file, import.meta.url)), text);
  const [{ model }] = cpus();
  const run = {
    date: new Date().toISOString().slice(0, 10),
    jobs: JOBS,
    machine: `${cpus().length} × ${model}, Linux ${release()}`,
    toolchains,
    list: list.map(({ name, group }) => ({ name, group })),
    results,
  };
  // A line for each watcher.
  const lines = results.map((result) => JSON.stringify(result)).join(',\n');
  const rest = JSON.stringify({ ...run, results: [] }).slice(0, -']}'.length);
  write('scoreboard.json', `${rest}\n${lines}\n]}\n`);
  write('../docs/scoreboard.md', page(run));
  write('../docs/scoreboard.svg', picture(run));
  write('../docs/scoreboard-narrow.svg', picture(run, true));
}
