/** Watchers of all kinds on one directory, what is wrong with what they tell, and what is there. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';

import { ResilientWatcher } from 'resilient-watcher';

import { parsed } from './texts.mjs';

/** The kinds, by what they watch below the directory. */
const TARGETS = {
  key: ['v/a'],
  volume: ['v'],
  'tree of a volume': ['v', { recursive: true }],
  'part of a volume': ['v/certs'],
  'keys of a volume': [['v/a', 'v/b', 'v/certs/key']],
  directory: ['d'],
  'tree of files': ['s', { recursive: true }],
  files: [['d/f', 'd/g']],
  links: ['l'],
  link: ['l/a'],
  'links and a key': [['l/b', 'l/key', 'v/a']],
  tree: ['', { recursive: true }],
};

const textsOf = ({ files }) => new Map([...files].map(([key, { content }]) => [key, String(content)]));
const isSame = (one, other) =>
  one.size === other.size && [...one].every(([key, text]) => other.get(key) === text);

export class Judged {
  /** What is wrong, in words. */
  faults = [];
  changes = 0;
  #name;
  #paths;
  #isRecursive;
  #watcher;
  #last = new Map();
  /** The number of the last text of each key, and of the volume. */
  #numbers = new Map();

  constructor(name, root, options) {
    const [path, own = {}] = TARGETS[name];
    this.#name = name;
    this.#paths = [path].flat().map((each) => (each === '' ? root : `${root}/${each}`));
    this.#isRecursive = own.recursive === true;
    this.#watcher = new ResilientWatcher(Array.isArray(path) ? this.#paths : this.#paths[0], {
      ...own,
      ...options,
    });
    this.#watcher.on('change', (change) => this.#told(change));
    this.#watcher.on('error', (error) => this.#fault(String(error)));
    this.#watcher.on('unreadable', ({ error }) => this.#fault(`unreadable: ${error.message}`));
  }

  /** A start that never ends differs from what is there. */
  start() {
    this.#watcher.start().catch(() => undefined);
  }

  close() {
    return this.#watcher.close();
  }

  #fault(text) {
    this.faults.push(`${this.#name}: ${text}`);
  }

  #told({ previous, current, added, changed, removed }) {
    this.changes += 1;
    const [before, now] = [textsOf(previous), textsOf(current)];
    if (!isSame(before, this.#last)) this.#fault('previous is not what was told last');
    if (previous.kind === current.kind && isSame(before, now) && this.changes > 1)
      this.#fault('the same is told twice');
    for (const key of removed) if (!before.delete(key)) this.#fault(`${key} is removed and was not there`);
    for (const key of [...added, ...changed]) {
      if (added.includes(key) === before.has(key)) this.#fault(`${key} is neither added nor changed`);
      before.set(key, now.get(key));
    }
    if (!isSame(before, now)) this.#fault('added, changed and removed do not sum up');
    this.#last = now;
    this.#judge(now);
  }

  #judge(now) {
    const revisions = new Map();
    for (const [key, text] of now) {
      const said = parsed(text);
      // What is written in place may have paused for longer than it is waited for.
      if (!said && text !== '' && !text.startsWith('p')) this.#fault(`${key} is not whole: ${text}`);
      if (!said) continue;
      const { how, number } = said;
      if (how === 'v') revisions.set(number, key);
      // What a link shows may be older than what was written in its place.
      const of = how === 'v' ? `${key} in a volume` : key;
      if (number < (this.#numbers.get(of) ?? 0)) this.#fault(`${key} goes back: ${text}`);
      this.#numbers.set(of, number);
    }
    if (revisions.size > 1) this.#fault(`two revisions at once: ${JSON.stringify([...revisions])}`);
  }

  /** Whether it has told what is there; what differs, in words. */
  difference() {
    const there = this.#there();
    if (isSame(there, this.#last)) return undefined;
    const show = (texts) => JSON.stringify([...texts].sort());
    return `${this.#name}: told ${show(this.#last)}, but there is ${show(there)}`;
  }

  #there() {
    const [path] = this.#paths;
    if (this.#paths.length > 1) return new Map(this.#paths.flatMap((each) => fileAt(each, each)));
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory())
      return new Map(fileAt(path, path.slice(path.lastIndexOf('/') + 1)));
    const texts = new Map();
    collect(path, '', this.#isRecursive, texts);
    return texts;
  }
}

const fileAt = (path, key) =>
  statSync(path, { throwIfNoEntry: false })?.isFile() ? [[key, readFileSync(path, 'utf8')]] : [];

/** A volume shows its keys only, also those in directories. */
function collect(directory, prefix, isRecursive, texts) {
  const isVolume = existsSync(`${directory}/..data`);
  const root = isVolume ? `${directory}/..data` : directory;
  const isDeep = isRecursive || isVolume || directory.includes('/v/');
  for (const entry of readdirSync(root, { withFileTypes: true })) {
    if (entry.name.startsWith('..')) continue;
    const path = `${root}/${entry.name}`;
    if (entry.isDirectory() && isDeep) collect(path, `${prefix}${entry.name}/`, true, texts);
    for (const [key, text] of fileAt(path, `${prefix}${entry.name}`)) texts.set(key, text);
  }
}

export const KINDS = Object.keys(TARGETS);
