/** Options that the seed draws, names that are not UTF-8, pipes, and a link out of the tree. */
import type { ResilientWatcherOptions } from '../../src/index.js';
import type { TreeWatchOptions } from '../../src/watch/watcher-options.js';
import type { Fs } from './actors/calls.js';
import { EDITS, ODD_EDITS } from './actors/editors.js';
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

export const drawn: Kind = (world) => {
  const { choices, machine } = world;
  directories(world, '/m', '/m/v', '/m/d', '/o');
  machine.process().fs.symlinkSync('/o', '/m/o');
  volume(world, '/m/v', ['a', 'certs/key']);
  const edits = [...Object.keys(EDITS), ...Object.keys(ODD_EDITS)];
  files(world, ['/m/d/f', `/m/d/${ODD_NAME}`, '/m/g', '/o/f'], edits);
  const path = choices.oneOf(['/m', '/m/d', '/m/v']);
  const [ignore, ignored] = choices.oneOf(IGNORED);
  const followLinks = choices.choose(2) === 1;
  const content = choices.choose(4) !== 1;
  const isTree = path !== '/m/d' || choices.choose(2) === 1;
  const maxContentBytes = content ? choices.oneOf([undefined, 12]) : undefined;
  const given: ResilientWatcherOptions = {
    ...options(world),
    maxContentBytes,
    settleMs: choices.oneOf([50, 0, 200]),
    persistent: choices.choose(3) !== 1,
    recursive: isTree && { ignore, followLinks, content },
  };
  const textOf = (inode: Inode, text: string): string => {
    const isRead =
      (content || !isTree) && (maxContentBytes === undefined || inode.bytes.length <= maxContentBytes);
    return isRead ? text : identityOf(inode);
  };
  const see = (fs: Fs): views.View => {
    const keys = new Map(views.directory(fs, path, isTree));
    if (isTree && path === '/m' && followLinks)
      for (const [key, text] of views.directory(fs, '/o', true)) keys.set(`o/${key}`, text);
    const shown = new Map<string, string>();
    for (const [key, text] of keys) {
      // Keys of a volume are published before they have links.
      const inode = fs.inodeAt(`${path}/${key}`.replace('/m/v/', '/m/v/..data/'));
      if (inode && !(isTree && ignored.test(key))) shown.set(key, textOf(inode, text));
    }
    return shown;
  };
  const { settleMs: heldMs = 50 } = given;
  return { path, options: given, heldMs, isTree: true, unitOf: (key) => unitOfPath(`${path}/${key}`), see };
};
