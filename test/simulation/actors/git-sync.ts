/** git-sync: each commit is a worktree of its own, and a relative link leads to the current one. */
import type { Steps, World } from '../world.js';
import { exists, makeDirectories, removeAll, write, type Fs } from './calls.js';
import type { Payload } from './volumes.js';

/** @param pauses before each commit, ms. */
export function* gitSync(
  fs: Fs,
  world: World,
  root: string,
  commits: readonly Payload[],
  pauses: readonly number[],
): Steps {
  const link = `${root}/link`;
  yield* makeDirectories(fs, `${root}/.worktrees`);
  for (const [index, files] of commits.entries()) {
    yield pauses[index] ?? 0;
    const target = `.worktrees/${(0xa0 + index).toString(16).repeat(4)}`;
    const old = exists(fs, link) ? fs.readlinkSync(link) : undefined;
    yield;
    fs.mkdirSync(`${root}/${target}`, 0o755);
    yield;
    yield* write(fs, `${root}/${target}/.git`, `gitdir: ${target}`);
    for (const [name, text] of files) {
      const above = name.lastIndexOf('/');
      if (above > 0) yield* makeDirectories(fs, `${root}/${target}/${name.slice(0, above)}`);
      yield* write(fs, `${root}/${target}/${name}`, text);
    }
    fs.symlinkSync(target, `${root}/tmp-link`);
    yield;
    fs.renameSync(`${root}/tmp-link`, link);
    yield;
    if (old !== undefined) yield* removeAll(fs, `${root}/${old}`);
  }
}
