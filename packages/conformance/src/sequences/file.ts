/** Plain files and links, as sidecars, agents and deployment tools write them. */
import fs from 'node:fs';
import { dirname } from 'node:path';

import type { Disk } from '../disk.js';
import { renameOver, showInPlace, turnLink, writeFile } from '../publishers.js';
import type { Sequence } from '../sequence.js';
import type { Publish, Stage } from '../stage.js';
import { append, rsync, rsyncInPlace, sed, vim, type Writer } from '../writers.js';

/** Begins with a plain file in its own directory. */
async function startWithFile(stage: Stage): Promise<string> {
  const path = stage.path('etc', 'app.yaml');
  stage.disk.mkdir(dirname(path));
  await stage.start(path, writeFile(stage.disk, path));
  return path;
}

const replaced =
  (count: number, publisher: (disk: Disk, path: string) => Publish): Sequence['run'] =>
  async (stage) => {
    const path = await startWithFile(stage);
    for (let update = 0; update < count; update += 1) await stage.show(publisher(stage.disk, path));
  };

const written =
  (count: number, writer: Writer): Sequence['run'] =>
  async (stage) => {
    const path = await startWithFile(stage);
    for (let update = 0; update < count; update += 1) await writer(stage, path);
  };

async function renamedOften(stage: Stage): Promise<void> {
  const path = await startWithFile(stage);
  for (let update = 0; update < 30; update += 1) {
    await stage.pass(renameOver(stage.disk, path));
    await stage.pause(10);
  }
  await stage.show(renameOver(stage.disk, path));
}

const inPlace =
  (parts: number, gapMs: number): Sequence['run'] =>
  async (stage) => {
    const path = await startWithFile(stage);
    for (let update = 0; update < 3; update += 1) await showInPlace(stage, path, { parts, gapMs });
  };

async function truncated(stage: Stage): Promise<void> {
  const path = await startWithFile(stage);
  for (let update = 0; update < 2; update += 1) {
    await stage.show(() => stage.disk.truncate(path), '');
    await stage.show((content) => {
      stage.disk.writeFile(path, content);
    });
  }
}

async function removedAndCreated(stage: Stage): Promise<void> {
  const path = await startWithFile(stage);
  for (let update = 0; update < 3; update += 1) {
    stage.disk.unlink(path);
    await stage.pause(200);
    await showInPlace(stage, path);
  }
}

/** The new file has the modification time of the old one, as after `rsync --times`. */
const keepTime =
  (publisher: (disk: Disk, path: string) => Publish) =>
  (disk: Disk, path: string): Publish =>
  (content) => {
    const times = fs.statSync(path);
    void publisher(disk, path)(content);
    disk.setTimes(path, times);
  };

const linkTurned =
  (how: 'rename' | 'remove'): Sequence['run'] =>
  async (stage) => {
    const path = stage.path('app.yaml');
    let releases = 0;
    const publish: Publish = (content) => {
      const target = stage.path(`release-${(releases += 1)}.yaml`);
      stage.disk.writeFile(target, content);
      turnLink(stage.disk, path, target, how);
    };
    await stage.start(path, publish);
    for (let update = 0; update < 3; update += 1) await stage.show(publish);
  };

async function directoryLinkTurned(stage: Stage): Promise<void> {
  let releases = 0;
  const publish: Publish = (content) => {
    const release = stage.path(`release-${(releases += 1)}`);
    stage.disk.mkdir(release);
    stage.disk.writeFile(`${release}/app.yaml`, content);
    turnLink(stage.disk, stage.path('current'), release, 'rename');
  };
  await stage.start(stage.path('current', 'app.yaml'), publish);
  for (let update = 0; update < 3; update += 1) await stage.show(publish);
}

async function targetReplaced(stage: Stage): Promise<void> {
  const target = stage.path('elsewhere', 'real.yaml');
  const link = stage.path('etc', 'app.yaml');
  for (const path of [target, link]) stage.disk.mkdir(dirname(path));
  stage.disk.symlink(target, link);
  await stage.start(link, renameOver(stage.disk, target));
  for (let update = 0; update < 3; update += 1) await stage.show(renameOver(stage.disk, target));
}

export const fileSequences: readonly Sequence[] = [
  {
    name: 'file-renamed-over',
    says: 'Another file is renamed over it, three times: editors, Vault Agent, `atomicWriteFile`.',
    run: replaced(3, renameOver),
  },
  { name: 'file-renamed-often', says: 'The same, thirty times, 10 ms apart.', run: renamedOften },
  {
    name: 'file-in-place',
    says: 'It is truncated and written at once: `echo >`, most sidecars. The empty moment is not a state.',
    run: inPlace(1, 0),
  },
  {
    name: 'file-in-parts',
    says: 'It is written in four parts, 15 ms apart: half a file is not a state.',
    run: inPlace(4, 15),
  },
  { name: 'file-appended', says: 'A line is appended, three times: `echo >>`.', run: written(3, append) },
  {
    name: 'file-sed',
    says: 'It is edited with `sed -i`: a temporary file beside it takes its place.',
    run: written(3, sed),
  },
  {
    name: 'file-vim',
    says: 'It is saved in vim: the old file becomes a backup, and a new one is written in its place.',
    run: written(3, vim),
  },
  {
    name: 'file-rsync',
    says: 'It is copied with `rsync`: a temporary file with a dot before it takes its place.',
    run: written(3, rsync),
  },
  {
    name: 'file-rsync-in-place',
    says: '`rsync --inplace` writes over the old contents, and cuts off what is left of them.',
    run: written(4, rsyncInPlace),
  },
  { name: 'file-truncated', says: 'It is truncated and stays empty: that is a state.', run: truncated },
  {
    name: 'file-removed',
    says: 'It is removed and created again 200 ms later.',
    run: removedAndCreated,
  },
  {
    name: 'file-same-time',
    says: 'It is replaced by one of the same size and modification time: `rsync --times`, image layers.',
    run: replaced(3, keepTime(renameOver)),
  },
  { name: 'link-renamed', says: 'A link to it is replaced by a rename.', run: linkTurned('rename') },
  {
    name: 'link-removed',
    says: 'A link to it is removed and made again: `ln -sfn`.',
    run: linkTurned('remove'),
  },
  {
    name: 'link-to-directory',
    says: 'A link in its path, `current`, is retargeted to the next release.',
    run: directoryLinkTurned,
  },
  {
    name: 'link-target',
    says: 'The link stays, and the file that it points to in another directory is replaced.',
    run: targetReplaced,
  },
];
