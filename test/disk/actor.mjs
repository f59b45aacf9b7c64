/**
 * `node actor.mjs SEED DIRECTORY`: one process in which a publisher, an editor and an administrator take turns, a few system calls
 * at a time, as the seed says. What is being made lies in DIRECTORY.outside.
 */
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

import { randomOf } from '../support/seeded-random.mjs';
import { textOf } from './texts.mjs';

const [seed, root] = process.argv.slice(2);
const outside = `${root}.outside`;
const random = randomOf(Number(seed));
const below = (count) => Math.floor(random() * count);
const oneOf = (these) => these[below(these.length)];
let number = 0;
const next = (how) => textOf(how, (number += 1), random);

/** How long an actor waits between its steps, ms. */
const pause = () => oneOf([0, 0, 0, 1, 5, 20, 40]);

const VOLUME = `${root}/v`;
const KEYS = ['a', 'b', 'certs/key'];

/** A file that somebody has open has another name for a while on FUSE. */
const HIDDEN = { recursive: true, force: true, maxRetries: 20, retryDelay: 10 };

/** As kubelet. */
function* publish() {
  const revision = `..2030_01_01_00_00_00.${(number += 1)}`;
  const text = textOf('v', number, random);
  const old = existsSync(`${VOLUME}/..data`) ? readlinkSync(`${VOLUME}/..data`) : undefined;
  mkdirSync(`${VOLUME}/${revision}/certs`, { recursive: true });
  yield;
  for (const key of KEYS) writeFileSync(`${VOLUME}/${revision}/${key}`, text);
  yield;
  symlinkSync(revision, `${VOLUME}/..data_tmp`);
  renameSync(`${VOLUME}/..data_tmp`, `${VOLUME}/..data`);
  yield;
  for (const name of ['a', 'b', 'certs'])
    if (!existsSync(`${VOLUME}/${name}`)) symlinkSync(`..data/${name}`, `${VOLUME}/${name}`);
  if (old !== undefined) rmSync(`${VOLUME}/${old}`, HIDDEN);
}

function* publisher() {
  for (let count = 12; count > 0; count -= 1) {
    yield* publish();
    yield oneOf([5, 20, 60, 120]);
  }
}

function* renamed(path) {
  writeFileSync(`${outside}/next`, next('r'));
  yield;
  renameSync(`${outside}/next`, path);
}

function* inPlace(path) {
  const text = next('p');
  writeFileSync(path, '');
  yield pause();
  appendFileSync(path, text.slice(0, 5));
  yield pause();
  appendFileSync(path, text.slice(5));
}

function* editor() {
  for (let count = 15; count > 0; count -= 1) {
    const path = `${root}/d/${oneOf(['f', 'g', 'e/h'])}`;
    const what = oneOf(['rename', 'rename', 'in place', 'remove']);
    if (what === 'rename') yield* renamed(path);
    else if (what === 'in place') yield* inPlace(path);
    else rmSync(path, { force: true });
    yield oneOf([0, 5, 20, 60]);
  }
}

/** A link into the volume becomes a plain file that is written for a while, and a link again. */
function* linker() {
  for (let count = 8; count > 0; count -= 1) {
    const [path, key] = oneOf([
      [`${root}/l/a`, 'a'],
      [`${root}/l/b`, 'b'],
      [`${root}/l/key`, 'certs/key'],
    ]);
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
      unlinkSync(path);
      yield oneOf([0, 0, 5]);
      writeFileSync(path, '');
      for (let pieces = 1 + below(8); pieces > 0; pieces -= 1) {
        appendFileSync(path, `p ${pieces} `);
        yield oneOf([5, 20, 30]);
      }
      yield* inPlace(path);
    } else {
      symlinkSync(`../v/${key}`, `${outside}/link`);
      renameSync(`${outside}/link`, path);
    }
    yield oneOf([5, 40, 100]);
  }
}

/** A directory of the tree is replaced, or made again. */
function* administrator() {
  for (let count = 5; count > 0; count -= 1) {
    const directory = `${root}/${oneOf(['s', 's/e'])}`;
    const fresh = `${outside}/fresh`;
    mkdirSync(`${fresh}/e`, { recursive: true });
    for (const name of ['f', 'e/f']) writeFileSync(`${fresh}/${name}`, next('r'));
    yield;
    const away = `${outside}/away${count}`;
    if (random() < 0.5 && existsSync(directory)) renameSync(directory, away);
    else rmSync(directory, HIDDEN);
    yield pause();
    if (!existsSync(`${root}/s`) && directory.endsWith('/e')) mkdirSync(`${root}/s`);
    renameSync(fresh, directory);
    rmSync(away, HIDDEN);
    yield oneOf([5, 50, 150]);
  }
}

/** Each in turn, in any order; a step that sleeps leaves the turn to the others. */
const actors = [publisher(), editor(), linker(), administrator()].map((steps) => ({ steps, wakesAt: 0 }));
while (actors.length > 0) {
  const now = performance.now();
  const ready = actors.filter(({ wakesAt }) => wakesAt <= now);
  if (ready.length === 0) {
    await sleep(1);
    continue;
  }
  const actor = oneOf(ready);
  const { done, value = 0 } = actor.steps.next();
  if (done) actors.splice(actors.indexOf(actor), 1);
  else actor.wakesAt = performance.now() + value;
}
