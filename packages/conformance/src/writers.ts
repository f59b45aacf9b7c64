/** Updates of a plain file with the system calls of a shell, sed, vim and rsync; a test compares them with the programs. */
import { basename, dirname, join } from 'node:path';

import type { Stage } from './stage.js';

/** Makes the next update, and waits until it has been shown. */
export type Writer = (stage: Stage, path: string) => Promise<void>;

/** `echo >> file`: one write at the end. */
export const append: Writer = (stage, path) => {
  const before = stage.disk.contents(path) ?? '';
  const line = `\n${stage.content()}`;
  return stage.show(() => {
    const descriptor = stage.disk.open(path, 'a');
    stage.disk.write(descriptor, line);
    stage.disk.close(descriptor);
  }, before + line);
};

/** `sed -i`: a temporary file beside it takes its place. */
export const sed: Writer = (stage, path) =>
  stage.show((content) => {
    const temporary = join(dirname(path), `sed${sixLetters()}`);
    const descriptor = stage.disk.open(temporary, 'wx+', 0o600);
    stage.disk.chmod(temporary, 0o644); // it takes owner and mode of the file
    stage.disk.write(descriptor, content);
    stage.disk.close(descriptor);
    stage.disk.rename(temporary, path);
  });

/** `:w` in vim: beside the swap file and a probe, the file becomes a backup, and a new one is written in its place. */
export const vim: Writer = async (stage, path) => {
  const { disk } = stage;
  const beside = (name: string): string => join(dirname(path), name);
  const swap = beside(`.${basename(path)}.swp`);
  const test = beside(`.${basename(path)}.swx`);
  const first = disk.open(swap, 'wx+', 0o600);
  disk.close(disk.open(test, 'wx+', 0o600));
  disk.unlink(test);
  disk.close(first);
  disk.unlink(swap);
  const swapFile = disk.open(swap, 'wx+', 0o600);
  const writeSwap = (): void => disk.write(swapFile, 'b0VIM'.padEnd(4_096, '\0'));
  writeSwap();
  disk.chmod(swap, 0o644);
  writeSwap();
  const probe = beside('4913');
  const probeDescriptor = disk.open(probe, 'wx', 0o644);
  disk.chmod(probe, 0o644);
  disk.close(probeDescriptor);
  disk.unlink(probe);
  stage.part('');
  disk.rename(path, `${path}~`);
  const descriptor = disk.open(path, 'w', 0o644);
  await stage.show((content) => {
    disk.write(descriptor, content);
    disk.sync(descriptor);
    disk.chmod(path, 0o644);
    disk.close(descriptor);
    disk.chmod(path, 0o644); // its access control list, which is the mode here
    writeSwap();
    disk.unlink(`${path}~`);
    disk.close(swapFile);
    disk.unlink(swap);
  });
};

/** `rsync`: a temporary file with a dot before it takes its place. */
export const rsync: Writer = (stage, path) =>
  stage.show((content) => {
    const temporary = join(dirname(path), `.${basename(path)}.${sixLetters()}`);
    const descriptor = stage.disk.open(temporary, 'wx+', 0o600);
    stage.disk.chmod(temporary, 0o600);
    stage.disk.write(descriptor, content);
    stage.disk.close(descriptor);
    stage.disk.chmod(temporary, 0o644);
    stage.disk.rename(temporary, path);
  });

/** `rsync --inplace`: writes over the old contents, and cuts off what is left of them. */
export const rsyncInPlace: Writer = async (stage, path) => {
  const { disk } = stage;
  const before = disk.contents(path) ?? '';
  const content = before.endsWith('.') ? stage.content() : stage.content().padEnd(before.length + 100, '.');
  if (content.length < before.length) stage.part(content + before.slice(content.length));
  const overwrite = (): number => {
    const descriptor = disk.open(path, 'r+');
    disk.write(descriptor, content);
    return descriptor;
  };
  if (content.length >= before.length) {
    await stage.show(() => {
      disk.close(overwrite());
    }, content);
    return;
  }
  const descriptor = overwrite();
  await stage.show(() => {
    disk.cut(descriptor, content.length);
    disk.close(descriptor);
  }, content);
};

const sixLetters = (): string => Math.random().toString(36).slice(2, 8).padEnd(6, 'x');
