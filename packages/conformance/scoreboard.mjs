/**
 * Runs the suite against every watcher of contestants.mjs.
 *
 *     node packages/conformance/scoreboard.mjs                 all of them, up to two hours; writes packages/conformance/docs/scoreboard.md and its pictures
 *     node packages/conformance/scoreboard.mjs measures     measures again, at a quieter moment, and keeps the verdicts; with names, those
 *                                        measures only: `measures delay idle`. New watchers are played and measured
 *     node packages/conformance/scoreboard.mjs Node         those of one language, briefly, and writes nothing; ends with 1 if this
 *                                        library or the reference reader is not perfect, or an adapter does not start
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release } from 'node:os';
import { fileURLToPath } from 'node:url';

import contestants, { runtime } from './contestants.mjs';
import { page, picture } from './scoreboard-page.mjs';
import { prepare } from './toolchains.mjs';

/** At a time. They wait most of the time. */
const JOBS = 16;
const cli = fileURLToPath(new URL('bin.js', import.meta.url));
const [asked, ...names] = process.argv.slice(2);
const isCheck = asked !== undefined && asked !== 'measures';

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

/** In the check, the Node.js that runs this; else the one that the page names. */
const commandOf = ({ command: [program, ...args] }) => [
  program === 'node' ? (isCheck ? process.execPath : runtime('node')) : program,
  ...args,
];
const title = ({ name, configuration }) => `${name}, ${configuration}`;
const ran = ({ event }) => event === 'sequence';

async function play(contestant) {
  const { language, name, version, configuration, says, groups = [] } = contestant;
  const chosen = groups.flatMap((group) => ['--only', group]);
  const documents = await conformance([...chosen, '--jobs', String(JOBS), '--', ...commandOf(contestant)]);
  const total = documents.find(({ event }) => event === 'total');
  if (!total) throw new Error(`${name}: ${JSON.stringify(documents.at(-1))}`);
  console.log(`${title(contestant)}: ${total.right} of ${total.sequences - total.skipped}`);
  const sequences = documents.filter(ran).map(({ name, group, verdict, says }) => ({
    ...{ name, group, verdict },
    ...(verdict !== 'right' && { says: says.replace(/conformance-\w+/g, 'conformance') }),
  }));
  return { language, name, version, configuration, says, played: today(), sequences };
}

/** Measures what was asked for, and keeps the rest of what is known. */
async function measure(contestant, { load: known = {}, measures = [] }) {
  const now = Math.round(loadavg()[0] * 10) / 10;
  const only = measures.length === 0 ? [] : names.flatMap((name) => ['--only', name]);
  const documents = await conformance(['--measure', ...only, '--', ...commandOf(contestant)]);
  const found = documents.filter(({ event }) => event === 'measure').map(({ event: _, ...rest }) => rest);
  console.log(`${title(contestant)} (load ${now}): ${found.map(({ says }) => says).join('; ')}`);
  const isFound = ({ name }) => found.some((each) => each.name === name);
  const load = { ...known, ...Object.fromEntries(found.map(({ name }) => [name, now])) };
  return { load, measures: [...measures.filter((each) => !isFound(each)), ...found] };
}

/** Shows that each adapter starts; what it misses is no news. */
async function starts(contestant) {
  const sequence = contestant.groups?.includes('volume') === false ? 'certificate-rotation' : 'swap';
  const flags = ['--only', sequence, '--timeout', '1000'];
  const [report] = await conformance([...flags, '--', ...commandOf(contestant)]);
  const hasStarted = !['silent', 'crashed'].includes(report.verdict);
  console.log(`${title(contestant)}: ${hasStarted ? 'starts' : `${report.verdict}, ${report.says}`}`);
  return hasStarted;
}

async function check(language) {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const node = major * 1_000 + minor;
  for (const contestant of contestants.filter((each) => each.language === language)) {
    const [module] = contestant.install?.split('@') ?? [];
    const isThere = !module || existsSync(new URL(`../node_modules/${module}`, import.meta.url));
    if (node < (contestant.node ?? 0)) console.log(`${title(contestant)}: skipped, it needs a newer Node.js`);
    else if (!isThere)
      console.log(`${title(contestant)}: skipped; npm install --no-save ${contestant.install}`);
    else if (contestant.mustBePerfect) await isPerfect(await play(contestant));
    else if (!(await starts(contestant))) process.exitCode = 1;
  }
}

function isPerfect({ name, sequences }) {
  const wrong = sequences.filter(({ verdict }) => verdict !== 'right' && verdict !== 'skipped');
  for (const { name: sequence, verdict, says } of wrong) {
    console.error(`${name} has to be perfect: ${sequence}: ${verdict}, ${says}`);
    process.exitCode = 1;
  }
}

/** Both phases take the contestants in turn, so that all have their share of what else the machine does. */
async function publish() {
  const toolchains = prepare([...new Set(contestants.map(({ language }) => language))]);
  const [{ sequences: list }] = await conformance(['--list']);
  const taking = contestants.filter(({ language }) => toolchains[language].reason === undefined);
  const machine = `${cpus().length} × ${cpus()[0].model}, Linux ${release()}`;
  const file = new URL('scoreboard.json', import.meta.url);
  const known = asked === 'measures' ? JSON.parse(readFileSync(file, 'utf8')).results : [];
  const run = {
    ...{ jobs: JOBS, machine, toolchains, list: list.map(({ name, group }) => ({ name, group })) },
    results: [],
  };
  for (const contestant of taking)
    run.results.push(known.find((each) => title(each) === title(contestant)) ?? (await play(contestant)));
  write(run);
  for (const [index, contestant] of taking.entries()) {
    const result = run.results[index];
    // The costs of what is rarely right are no news.
    if (isMostlyRight(result)) Object.assign(result, await measure(contestant, result));
    write(run);
  }
  for (const result of run.results) {
    if (contestants.some((each) => each.mustBePerfect && title(each) === title(result))) isPerfect(result);
  }
}

const isMostlyRight = ({ sequences }) =>
  sequences.filter(({ verdict }) => verdict === 'right').length * 2 > sequences.length;

const today = () => new Date().toISOString().slice(0, 10);

function write(run) {
  const save = (file, text) => writeFileSync(fileURLToPath(new URL(file, import.meta.url)), text);
  // A line for each watcher.
  const lines = run.results.map((result) => JSON.stringify(result)).join(',\n');
  const { results: _, ...rest } = run;
  save('scoreboard.json', `${JSON.stringify(rest).slice(0, -1)},"results":[\n${lines}\n]}\n`);
  save('docs/scoreboard.md', page(run));
  save('docs/scoreboard.svg', picture(run));
  save('docs/scoreboard-narrow.svg', picture(run, true));
}

if (isCheck) await check(asked);
else await publish();
