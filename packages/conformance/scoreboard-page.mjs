/** The scoreboard as a page and as a picture; both are made of one run. */
import contestants from './contestants.mjs';

const COLUMNS = {
  volume: 'volume',
  secret: 'Secret',
  token: 'token',
  certificate: 'certificate',
  file: 'file',
  process: 'stopped',
  limits: 'limits',
  user: 'non-root',
};

/** What a result has of a group; undefined if it does not take part, or all was skipped. */
function score({ sequences }, group) {
  const played = sequences.filter((one) => (!group || one.group === group) && one.verdict !== 'skipped');
  if (played.length === 0) return undefined;
  return { right: played.filter(({ verdict }) => verdict === 'right').length, of: played.length };
}

const cell = (found) => (found ? `${found.right}/${found.of}` : '–');
const rate = (result) => score(result).right / score(result).of;
/** The best first, of equals the fastest; those that do not take part in everything come last. */
const ranked = ({ results, list }) =>
  results.toSorted(
    (a, b) =>
      Number(b.sequences.length === list.length) - Number(a.sequences.length === list.length) ||
      rate(b) - rate(a) ||
      delayOf(a) - delayOf(b),
  );
const valueOf = ({ measures = [] }, name, value) =>
  measures.find((measure) => measure.name === name)?.values?.[value];
const delayOf = (result) => valueOf(result, 'delay', 'p50Ms') ?? Infinity;
const title = ({ name, configuration }) => `${name}, ${configuration}`;

/** What a user chooses by, beside the verdicts: the head of the column, its measure and its value. */
const COSTS = [
  ['p50 ms', 'delay', 'p50Ms'],
  ['p99 ms', 'delay', 'p99Ms'],
  ['needless reports', 'delay', 'needless'],
  ['idle, 1 file', 'idle', 'cpuMs'],
  ['idle, 1,000', 'files', 'cpuMs'],
  ['update of 1,000', 'files', 'updateCpuMs'],
  ['calls a second', 'calls', 'idle'],
  ['calls an update', 'calls', 'update'],
  ['torn sets', 'sets', 'torn'],
  ['hung mount stops', 'hang', 'stops'],
  ['hung later stops', 'hang', 'later'],
];

const named = ({ name, version, configuration }) => {
  const shown = name === 'resilient-watcher' ? `**${name}**` : name;
  return [shown, version, configuration].filter(Boolean).join(' ');
};

const line = (cells) => `| ${cells.join(' | ')} |`;
const rule = (texts, numbers) => line([...Array(texts).fill('---'), ...Array(numbers).fill('--:')]);

function costs(result) {
  const values = COSTS.map(([, name, value]) => valueOf(result, name, value) ?? '–');
  return line([named(result), cell(score(result)), ...values]);
}

function row(result) {
  const cells = Object.keys(COLUMNS).map((group) => cell(score(result, group)));
  return line([named(result), result.language, ...cells, cell(score(result))]);
}

/** The names of what it got wrong, by verdict. */
function failures({ sequences }) {
  const failed = sequences.filter(({ verdict }) => !['right', 'skipped'].includes(verdict));
  const verdicts = [...new Set(failed.map(({ verdict }) => verdict))].sort();
  return verdicts.map((verdict) => {
    const names = failed
      .filter((one) => one.verdict === verdict)
      .map(({ name }) => `\`${name}\``)
      .sort();
    return `- ${verdict}: ${names.join(', ')}`;
  });
}

const adviceFor = (result) => contestants.find((contestant) => title(contestant) === title(result)).advice;

function section(result) {
  const failed = failures(result);
  const skipped = result.sequences.filter(({ verdict }) => verdict === 'skipped');
  return [
    `### ${title(result)}`,
    '',
    `${result.language}${result.version ? `, version ${result.version}` : ''}. Configuration: ${result.says}.`,
    '',
    ...(failed.length === 0
      ? ['All right.']
      : [...failed, '', `What its users can do: ${adviceFor(result)}`]),
    ...(skipped.length === 0
      ? []
      : ['', `Skipped: ${skipped.map(({ name, says }) => `\`${name}\` (${says})`).join(', ')}.`]),
    '',
  ];
}

/** `a, b and c`. */
const listed = (names) => names.join(', ').replace(/, ([^,]+)$/, ' and $1');
const daysOf = ({ results }) => listed([...new Set(results.map(({ played }) => played))].sort());

/** The table of what a user chooses by, and what its columns are. */
function costSection(run) {
  const range = (...names) => {
    const loads = run.results.flatMap(({ load = {} }) => names.map((name) => load[name] ?? []).flat());
    return `${Math.min(...loads)} to ${Math.max(...loads)}`;
  };
  return [
    '## Which one to choose',
    '',
    line(['watcher', 'right', ...COSTS.map(([head]) => head)]),
    rule(1, 1 + COSTS.length),
    ...ranked(run).map(costs),
    '',
    'Sorted by what was right, then by the delay. The columns, which `watch-conformance --measure` prints:',
    '',
    '- **p50, p99**: from the rename that is the swap to the line of the program, ms, in 25 updates at random moments.',
    '- **needless reports**: for each update, how often the watcher reported a file that was the same as before.',
    '- **idle**: CPU time of the program while nothing happens, ms a second, with one file and with 1,000 files of one volume;',
    '  **update of 1,000**: CPU time when one of these changes, ms.',
    '- **calls**: system calls while nothing happens, and for an update, counted by `strace`.',
    '- **torn sets**: in 200 swaps, how often two files of a volume were read of two updates.',
    '- **hung mount stops**: what another file on a mount that does not answer keeps from being shown; **hung later**: the same',
    '  if the mount hangs when both files have been shown.',
    '',
    '`–`: not shown, or not measured, because less than half of the sequences were right or the adapter takes one file. Every',
    'adapter but those named `corrected` reads the file when its watcher says that something has changed, and does nothing else. A',
    'poll looks cheap for one file, and multiplies with the files; its delay is half its period.',
    '',
    `The load average was ${range('delay')} when the measures of delays began, and ${range('idle', 'files')} for the CPU times. On a`,
    'busier machine both are longer, p99 above all; system calls are not. Compare within this page only.',
    '',
  ];
}

/** packages/conformance/docs/scoreboard.md */
export function page(run) {
  const versions = Object.entries(run.toolchains).map(([language, { version, reason }]) =>
    version ? `${language} ${version.replace(/^v/, '')}` : `${language} left out: ${reason}`,
  );
  return [
    '# Scoreboard',
    '',
    '<!-- Written by `node packages/conformance/scoreboard.mjs`. Do not edit. -->',
    '',
    `How watchers for ${listed(Object.keys(run.toolchains))} handle the updates that Kubernetes makes:`,
    `${run.list.length} sequences, described in [conformance](conformance.md). Run on ${daysOf(run)}: ${run.machine};`,
    `${versions.join('; ')}.`,
    '',
    ...(run.results.some(({ measures }) => measures) ? costSection(run) : []),
    '## Verdicts by group',
    '',
    'A cell shows how many of the sequences of a group were right, of those that were played.',
    '',
    '![Sequences that were right, by group](scoreboard.svg)',
    '',
    line(['watcher', 'language', ...Object.values(COLUMNS), 'all']),
    rule(2, Object.keys(COLUMNS).length + 1),
    ...ranked(run).map(row),
    '',
    `${run.jobs} sequences ran at a time. \`–\` is a group that a watcher is not made for. No adapter retries what its watcher refuses,`,
    'except where the configuration says so. What is torn, and what is passed over in a burst, is a matter of chance: from one run',
    'to the next a row may differ by up to four sequences.',
    '',
    'Is your library configured wrong here? Its adapter is in `packages/conformance/contestants`, and the issue form *You configured us wrong* is for',
    'you.',
    '',
    '## What each one fails',
    '',
    ...ranked(run).flatMap(section),
  ]
    .join('\n')
    .replace(/\n+$/, '\n');
}

const CELL = 52;
const ROW = 24;
const HEAD = 62;
const FOOT = 26;
const LABELS = 272;
/** On a phone a watcher's name is above its cells, and the picture as wide as the screen. */
const NARROW_CELL = 40;
const NAME = 20;
const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** packages/conformance/docs/scoreboard.svg, or with `isNarrow` packages/conformance/docs/scoreboard-narrow.svg */
export function picture(run, isNarrow = false) {
  const rows = ranked(run);
  const groups = [...Object.keys(COLUMNS), undefined];
  const [left, cell, row] = isNarrow ? [6, NARROW_CELL, NAME + ROW] : [LABELS, CELL, ROW];
  const width = left + cell * groups.length + (isNarrow ? 6 : 12);
  const height = HEAD + row * rows.length + FOOT;
  const heads = groups.map((group, column) => {
    const x = left + cell * (column + 0.5);
    // Neighbors that are wider than a cell are one below the other.
    const y = HEAD - (!isNarrow ? 12 : column % 2 === 0 ? 22 : 8);
    return `<text x="${x}" y="${y}" text-anchor="middle" font-size="11">${COLUMNS[group] ?? 'all'}</text>`;
  });
  const lines = rows.map((result, index) => {
    const isOurs = result.name === 'resilient-watcher';
    const top = HEAD + row * index;
    const place = isNarrow
      ? `x="${left + 2}" y="${top + NAME / 2 + 2}"`
      : `x="${left - 8}" y="${top + ROW / 2}" text-anchor="end"`;
    const label = `<text ${place}${isOurs ? ' font-weight="bold"' : ''}>${escaped(title(result))}</text>`;
    const cells = groups.map((group, column) =>
      square(score(result, group), left + cell * column + 2, top + row - ROW + 2, cell - 4, isOurs),
    );
    return [label, ...cells].join('\n');
  });
  const description = `Of ${run.list.length} sequences of updates, how many each watcher got right, by group`;
  const margin = isNarrow ? left + 2 : 12;
  const heading = isNarrow ? 'Seen right, of' : 'Updates of Kubernetes that were seen right:';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${description}">`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    '<g font-family="system-ui, sans-serif" font-size="12" fill="#1f2933" dominant-baseline="central">',
    `<text x="${margin}" y="18" font-size="14" font-weight="bold">${heading} ${run.list.length} sequences</text>`,
    ...heads,
    ...lines,
    `<text x="${margin}" y="${height - 11}" font-size="11" fill="#616e7c">${escaped(`${run.machine}, ${daysOf(run)}`)}</text>`,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

/** Filled from the left by what was right. */
function square(found, x, y, width, isOurs) {
  const height = ROW - 4;
  const middle = `x="${x + width / 2}" y="${y + height / 2}" text-anchor="middle" font-size="11"`;
  if (!found) return `<text ${middle} fill="#9aa5b1">–</text>`;
  const part = ((width * found.right) / found.of).toFixed(1);
  const isAll = found.right === found.of;
  const color = isOurs ? '#326ce5' : isAll ? '#9aa5b1' : '#d5dae0';
  const text = isOurs && isAll ? '#ffffff' : '#1f2933';
  return [
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="#f5f7fa"/>`,
    `<rect x="${x}" y="${y}" width="${part}" height="${height}" fill="${color}"/>`,
    `<text ${middle} fill="${text}">${found.right}/${found.of}</text>`,
  ].join('\n');
}
