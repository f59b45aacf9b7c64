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
/** The best first; those that do not take part in everything come last. */
const ranked = ({ results, list }) =>
  results.toSorted(
    (a, b) =>
      Number(b.sequences.length === list.length) - Number(a.sequences.length === list.length) ||
      rate(b) - rate(a),
  );
const title = ({ name, configuration }) => `${name}, ${configuration}`;
const milliseconds = (value) => (value === null ? '–' : `${value} ms`);

function row(result) {
  const { language, name, version, configuration } = result;
  const shown = name === 'resilient-watcher' ? `**${name}**` : name;
  const cells = Object.keys(COLUMNS).map((group) => cell(score(result, group)));
  const total = cell(score(result));
  const delays = [milliseconds(result.medianMs), milliseconds(result.p99Ms)];
  return `| ${[shown, language, version, configuration, ...cells, total, ...delays].join(' | ')} |`;
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

/** docs/scoreboard.md */
export function page(run) {
  const versions = Object.entries(run.toolchains).map(([language, { version, reason }]) =>
    version ? `${language} ${version.replace(/^v/, '')}` : `${language} left out: ${reason}`,
  );
  const columns = ['watcher', 'language', 'version', 'configuration', ...Object.values(COLUMNS)];
  return [
    '# Scoreboard',
    '',
    '<!-- Written by `npm run scoreboard`. Do not edit. -->',
    '',
    `How watchers for ${listed(Object.keys(run.toolchains))} handle the updates that Kubernetes makes:`,
    `${run.list.length} sequences, described in [conformance](conformance.md). A cell shows how many of the sequences of a group`,
    'were right, of those that were played.',
    '',
    ...(run.note ? [run.note, ''] : []),
    '![Sequences that were right, by group](scoreboard.svg)',
    '',
    `Run on ${run.date}: ${run.machine}; ${versions.join('; ')}.`,
    '',
    `| ${[...columns, 'all', 'median', 'p99'].join(' | ')} |`,
    `| ${[...columns.map((_, index) => (index < 4 ? '---' : '--:')), '--:', '--:', '--:'].join(' | ')} |`,
    ...ranked(run).map(row),
    '',
    `The delay is from the beginning of an update to the line of the program, with ${run.jobs} sequences at a time on this machine, so`,
    'compare it within this page only; where inotify is at its limits, it is that of polling. `–` is a group that a watcher is not',
    'made for. Every adapter reads the file when its watcher says that something has changed, and does nothing else: it does not',
    'retry what its watcher refuses, except where the configuration says so. What is torn, and what is passed over in a burst, is a',
    'matter of chance: from one run to the next a row may differ by up to four sequences.',
    '',
    'Is your library configured wrong here? Its adapter is in `conformance/contestants`, and the issue form *You configured us wrong* is for',
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

/** docs/scoreboard.svg, or with `isNarrow` docs/scoreboard-narrow.svg */
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
    `<text x="${margin}" y="${height - 11}" font-size="11" fill="#616e7c">${escaped(`${run.machine}, ${run.date}`)}</text>`,
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
