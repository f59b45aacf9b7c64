/** Programs that change plain files, each as it does it. */
import { constants } from 'node:fs';

import type { Steps, World } from '../world.js';
import { exists, write, type Fs } from './calls.js';
import { renderTemplate } from './vault-agent.js';
import { SPELLED_EDITS } from './spellings.js';
import { copy, linkAndCopy, placeholder, relink } from './copies.js';

/** Replaces or changes a file. @param pauseMs how long it takes in the middle. */
export type Program = (fs: Fs, world: World, path: string, text: string, pauseMs: number) => Steps;

/** What is written in place is not complete before it is closed. */
export function* inPlace(world: World, path: string, work: Steps): Steps {
  world.writes(path);
  yield* work;
  world.ends(path);
  yield;
}

const WRITE = constants.O_WRONLY | constants.O_CREAT;

export const EDITS: Readonly<Record<string, Program>> = {
  /** A shell's `>`, or any program that writes in place. */
  *shell(fs, world, path, text, pauseMs) {
    yield* inPlace(world, path, write(fs, path, text, 2, pauseMs));
  },

  /** A new file, renamed into place: `sed -i`, `mv`, rsync. */
  *rename(fs, world, path, text, pauseMs) {
    const temporary = `${path}.tmp`;
    world.writes(temporary);
    yield* write(fs, temporary, `renamed, ${text}`, 2);
    world.ends(temporary);
    yield pauseMs;
    fs.renameSync(temporary, path);
    yield;
  },

  vault: renderTemplate,

  /** vim with `backupcopy=no`: the old file becomes the backup, and a new file is written. */
  *vim(fs, world, path, text, pauseMs) {
    world.writes(path);
    if (exists(fs, path)) {
      fs.renameSync(path, `${path}~`);
      yield;
    }
    yield* write(fs, path, text, 2, pauseMs);
    world.ends(path);
    yield;
    if (!exists(fs, `${path}~`)) return;
    fs.unlinkSync(`${path}~`);
    yield;
  },

  /** `rsync --inplace`: written over what is there. All texts of a file have the same length. */
  *rsync(fs, world, path, text, pauseMs) {
    yield* inPlace(world, path, write(fs, path, text, 3, pauseMs, WRITE));
  },

  /** `rm` and `>`. */
  *recreate(fs, world, path, text, pauseMs) {
    world.writes(path);
    if (exists(fs, path)) {
      fs.unlinkSync(path);
      yield pauseMs;
    }
    yield* write(fs, path, text);
    world.ends(path);
    yield;
  },

  copy,
  placeholder,
  relink,
  linkAndCopy,

  /** For good. */
  *remove(fs, _world, path) {
    if (!exists(fs, path)) return;
    fs.unlinkSync(path);
    yield;
  },
};

/** Programs of which only some kinds of targets make sense. */
export const ODD_EDITS: Readonly<Record<string, Program>> = {
  /** A pipe takes the place of a file for a while. */
  *pipe(fs, world, path, text, pauseMs) {
    if (exists(fs, path)) fs.unlinkSync(path);
    fs.mkfifoSync(path);
    yield pauseMs;
    fs.unlinkSync(path);
    yield pauseMs;
    yield* inPlace(world, path, write(fs, path, text));
  },
};

const PROGRAMS = { ...EDITS, ...ODD_EDITS, ...SPELLED_EDITS };

/** One use of a program. */
export interface Edit {
  readonly edit: string;
  readonly path: string;
  readonly text: string;
  readonly pauseMs: number;
  readonly beforeMs: number;
}

/** Makes one edit after another. */
export function* editor(fs: Fs, world: World, edits: readonly Edit[]): Steps {
  for (const { edit, path, text, pauseMs, beforeMs } of edits) {
    yield beforeMs;
    yield* PROGRAMS[edit]?.(fs, world, path, text, pauseMs) ?? [];
  }
}
