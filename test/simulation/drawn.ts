/** Options that the seed draws, names that are not UTF-8, pipes, and a link out of the tree. */
import type { ResilientWatcherOptions } from '../../src/index.js';
import type { TreeWatchOptions } from '../../src/watch/watcher-options.js';
import type { Fs } from './actors/calls.js';
import { EDITS, ODD_EDITS } from './actors/editors.js';
import { HABITS } from './consumers/habits.js';
import { STREAMS } from './consumers/streaming.js';
import { directories, files, options, unitOfPath, volume, type Kind } from './kinds.js';
import type { Inode } from './machine/inode.js';
import * as views from './views.js';

/** A byte that begins no sequence of UTF-8, as the library shows it. */
const ODD_NAME = '\udcffodd';

const IGNORED: readonly [patterns: NonNullable<TreeWatchOptions['ignore']>, key: RegExp][] = [
  [[], /^$/],
  [['**/f'], /(?:^|\/)f$/],
  [['d'], /^d\//],
  [['v/certs/**'], /^v\/certs\//],
  [[/^o(?:\/|$)/], /^o\//],
  [[(path) => path.endsWith(ODD_NAME)], new RegExp(`${ODD_NAME}$`)],
];

/** What is told of a file that is not read. */
const identityOf = ({ stat: { dev, ino, size, mtimeNs, ctimeNs } }: Inode): string =>
  `stat:${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;

const GROUP = ['/m/v/a', '/m/v/certs/key', '/m/g'];

export const drawn: Kind = (world) => {
  const { choices, machine } = world;
  directories(world, '/m', '/m/v', '/m/d', '/o');
  machine.process().fs.symlinkSync('/o', '/m/o');
  volume(world, '/m/v', ['a', 'certs/key']);
  const shape = choices.oneOf(['/m', '/m/d', '/m/v', 'group'] as const);
  const isGroup = shape === 'group';
  // A pipe makes a group unreadable.
  const edits = [...Object.keys(EDITS), ...(isGroup ? [] : Object.keys(ODD_EDITS))];
  // Through the link: nobody writes behind it before its time.
  files(world, ['/m/d/f', `/m/d/${ODD_NAME}`, '/m/g', '/m/o/f'], edits);
  const isTree = shape === '/m' || (!isGroup && choices.choose(2) === 1);
  const settleMs = choices.oneOf([50, 0, 200]);
  const common = { ...options(world), settleMs, persistent: choices.choose(3) !== 1 };
  const maxContentBytes = choices.oneOf([undefined, 12]);
  const habits = { ...HABITS, ...STREAMS };
  if (isGroup) {
    const groupSettleMs = choices.oneOf([200, 0]);
    return {
      path: GROUP,
      options: { ...common, maxContentBytes, groupSettleMs },
      heldMs: settleMs + groupSettleMs,
      unitOf: unitOfPath,
      see: (fs) => shownIn(fs, views.group(fs, GROUP), (key) => key, isReadUpTo(maxContentBytes)),
      habits,
    };
  }
  const [ignore, ignored] = choices.oneOf(IGNORED);
  const followLinks = choices.choose(2) === 1;
  const content = !isTree || choices.choose(4) !== 1;
  // Of a volume, all files or none are read.
  const maxFiles = shape === '/m/v' && content ? choices.oneOf([undefined, 1]) : undefined;
  const given: ResilientWatcherOptions = {
    ...common,
    ...(content && { maxContentBytes, maxFiles }),
    recursive: isTree && { ignore, followLinks, content },
  };
  const see = (fs: Fs): views.View => {
    const keys = new Map(views.directory(fs, shape, isTree));
    if (isTree && shape === '/m' && followLinks)
      for (const [key, text] of views.directory(fs, '/o', true)) keys.set(`o/${key}`, text);
    if (isTree) for (const key of keys.keys()) if (ignored.test(key)) keys.delete(key);
    const mayRead = isReadUpTo(!content || keys.size > (maxFiles ?? Infinity) ? -1 : maxContentBytes);
    return shownIn(fs, keys, (key) => `${shape}/${key}`, mayRead);
  };
  const unitOf = (key: string): string => unitOfPath(`${shape}/${key}`);
  return { path: shape, options: given, heldMs: settleMs, isTree: true, unitOf, see, habits };
};

const isReadUpTo =
  (maxContentBytes = Infinity) =>
  ({ bytes }: Inode): boolean =>
    bytes.length <= maxContentBytes;

/** A file that is not read is told by its identity. */
function shownIn(
  fs: Fs,
  keys: views.View,
  pathOf: (key: string) => string,
  isRead: (inode: Inode) => boolean,
): views.View {
  const shown: views.View = new Map();
  for (const [key, text] of keys) {
    // Keys of a volume are published before they have links.
    const inode = fs.inodeAt(pathOf(key).replace('/m/v/', '/m/v/..data/'));
    if (inode) shown.set(key, isRead(inode) ? text : identityOf(inode));
  }
  return shown;
}
