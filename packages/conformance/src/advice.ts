/** What a right program does where another one failed, in one sentence. */
import type { GroupedSequence } from './sequences.js';
import type { Report } from './report.js';

const WATCH_DIRECTORY = 'Watch the directory, not the inode: the file was replaced.';
const ANY_EVENT =
  'Watch the directory of the path, and read the file at any event there: what is renamed is `..data`, so no event names the file.';
const BEGIN_AGAIN =
  'Watch the directories above as well, and begin again when one of them is replaced, or read on a timer: a watch is bound to the old inode.';
const RESOLVE =
  'Resolve the path at every event, and watch the directory of each link in it, or read on a timer.';
const SETTLE =
  'Show contents only when a second read 50 ms later finds the same: a file that is being written is empty or half.';
const COMPARE = 'Compare contents, not names or times, and read at every event.';
const READ_AFTER = 'Read the file after the last event as well, not only at the first one of a burst.';
const WAIT =
  'Treat a missing file as a moment, not as an end: watch the nearest directory above that exists, or read on a timer.';
const POLL = 'Read the file on a timer as well: the kernel has no watch left, or has dropped events.';
const START =
  'See that the program starts, by running its command with the path of a file: it ended before it showed anything.';
const CATCH = 'Treat EACCES as a moment: keep the last contents, and look again.';

/** By name; `*` stands for any beginning or end. The first one that fits counts. */
const BY_NAME: readonly (readonly [name: string, advice: string])[] = [
  ['gap-*', WAIT],
  ['*-missing', WAIT],
  ['key-*', WAIT],
  ['same-content', COMPARE],
  ['a-b-a*', COMPARE],
  ['burst-*', READ_AFTER],
  ['*-burst', READ_AFTER],
  ['file-renamed-often', READ_AFTER],
  ['changes-while-starting', 'Watch first, then read: what changes in between has an event.'],
  ['volume-recreated*', BEGIN_AGAIN],
  ['*-recreated', BEGIN_AGAIN],
  ['ancestor-*', BEGIN_AGAIN],
  ['sub-path', 'Show the first contents and nothing else: a subPath is a mount of one file.'],
  ['old-revisions-kept', RESOLVE],
  ['becomes-volume', RESOLVE],
  ['link-*', RESOLVE],
  ['file-in-*', SETTLE],
  ['file-rsync-in-place', SETTLE],
  [
    'file-vim',
    'Watch the directory, not the inode: for a moment the file is missing, then another one is there.',
  ],
  ['file-appended', 'Read after IN_MODIFY as well, not only after a rename: the same file was written.'],
  ['file-removed', WAIT],
  ['file-truncated', 'Show an empty file when it stays empty.'],
  ['file-same-time', COMPARE],
  ['queue-overflow', POLL],
  ['no-*', POLL],
  ['stopped*', READ_AFTER],
  ['user-*', CATCH],
];

const BY_VERDICT: Partial<Record<Report['verdict'], string>> = {
  torn: SETTLE,
  crashed: 'Catch the errors of the watcher and go on: the next update has to be shown too.',
  silent: 'Print the SHA-256 of the file as soon as it can be read, and flush the line.',
  false: 'Print the digest of the whole file as it is now, and nothing that was read before.',
  unproven: 'Run it again with fewer jobs: the machine was too busy to prove anything.',
};

/** Where the reason of a crash or of silence is the situation, not the program as a whole. */
const SITUATIONS = [WAIT, POLL, CATCH];

/** @param hasStarted whether the program has shown any contents. */
export function adviceFor(
  { name, group }: GroupedSequence,
  verdict: Report['verdict'],
  hasStarted: boolean,
): string {
  const usual = group === 'file' ? WATCH_DIRECTORY : ANY_EVENT;
  const found = BY_NAME.find(([pattern]) => fits(name, pattern))?.[1] ?? usual;
  const general = BY_VERDICT[verdict];
  if (general === undefined) return found;
  if (verdict === 'crashed' && !hasStarted && !SITUATIONS.includes(found)) return START;
  if (!SITUATIONS.includes(found) || (verdict !== 'crashed' && verdict !== 'silent')) return general;
  return verdict === 'crashed' ? `${general} ${found}` : found;
}

function fits(name: string, pattern: string): boolean {
  if (pattern.startsWith('*')) return name.endsWith(pattern.slice(1));
  if (pattern.endsWith('*')) return name.startsWith(pattern.slice(0, -1));
  return name === pattern;
}
