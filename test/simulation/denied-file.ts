/** A file that is mounted by itself and may not be read, beside others that may: only of that one is nothing heard. */
import { write } from './actors/calls.js';
import { USER } from './denied.js';
import { directories, files, options, type Kind } from './kinds.js';
import type { Inode } from './machine/inode.js';
import * as views from './views.js';

const ROOT = '/m';
const MOUNTED = `${ROOT}/f`;
const SOURCE = '/host/f';

/** What is told of a file that cannot be read. */
const identityOf = ({ stat: { dev, ino, size, mtimeNs, ctimeNs } }: Inode): string =>
  `stat:${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;

export const deniedFile: Kind = (world) => {
  const { choices, machine, library } = world;
  library.uid = library.gid = USER;
  directories(world, ROOT, '/host', `${ROOT}/e`);
  const { fs } = machine.process();
  for (const path of [MOUNTED, SOURCE]) Array.from(write(fs, path, 'the first text'));
  fs.chmodSync(SOURCE, 0o600);
  machine.mount(MOUNTED, { type: 'ext4', bind: SOURCE });
  files(world, [`${ROOT}/g`, `${ROOT}/e/g`], ['rename', 'shell', 'vim', 'rsync', 'recreate', 'remove']);
  const isOfFile = choices.choose(3) === 2;
  return {
    path: isOfFile ? [`${ROOT}/g`] : ROOT,
    options: isOfFile ? options(world) : { ...options(world), recursive: true },
    isTree: !isOfFile,
    unitOf: (key) => (isOfFile ? key : `${ROOT}/${key}`),
    see(observer) {
      if (isOfFile) return views.group(observer, [`${ROOT}/g`]);
      const view = views.directory(observer, ROOT, true);
      const inode = observer.inodeAt(MOUNTED);
      return inode ? view.set('f', identityOf(inode)) : view;
    },
  };
};
