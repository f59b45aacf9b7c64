/**
 * Parts of a tree, or members of a group, are removed and added again while others change them: `remove()` and `add()` resolve
 * when that is told. One member of the group is on a server that hangs meanwhile.
 */
import { write } from '../actors/calls.js';
import { NOTHING, historyOf, type History } from '../history.js';
import { checkAllIsTold, type Report } from '../invariants.js';
import { KINDS, type Scene } from '../kinds.js';
import { Violation, type World } from '../world.js';
import { Watching } from './watching.js';

/** A part of each tree. */
const PARTS = { tree: 'd', around: 'v', on: 'certs' } as const;

const PAUSES_MS = [0, 5, 40, 400];

/** When a server hangs, and for how long, ms. */
const SERVER_PAUSES_MS = [0, 1, 40, 400, 3_000];

/** Two resyncs, and what settles after them, ms. */
const REST_MS = 12_000;

const POINT = '/n';
const REMOTE = `${POINT}/f`;

/** Somebody who calls `add()` and `remove()`. */
interface Program {
  readonly world: World;
  readonly watching: Watching;
  readonly isTold: (part: string) => boolean;
  /** What is removed, and that was told. */
  readonly removed: Set<string>;
}

export async function regroup(world: World): Promise<void> {
  const { choices } = world;
  const kind = choices.oneOf(['tree', 'around', 'on', 'groups', 'groups', 'groups'] as const);
  const given = KINDS[kind]?.(world);
  if (!given) throw new Error('There is no such kind');
  const members = typeof given.path === 'string' ? [] : [...given.path, REMOTE];
  const scene = kind === 'groups' ? { ...given, path: members } : given;
  const server = kind === 'groups' ? hangs(world) : Promise.resolve(undefined);
  const history = historyOf(world, scene.see, scene.unitOf);
  const watching = new Watching(world, { ...scene, options: { ...scene.options, resyncIntervalMs: 5_000 } });
  const { watcher } = watching;
  const isTold = (part: string): boolean =>
    [...(watcher.current?.files.keys() ?? [])].some((key) => key === part || key.startsWith(`${part}/`));
  const removed = new Set<string>();
  const wrong: string[] = [];
  watcher.on('change', () => wrong.push(...[...removed].filter(isTold)));
  const program = { world, watching, isTold, removed };
  try {
    const calls = heeded(kind === 'groups' ? membersOf(program, members) : partOf(program, PARTS[kind]));
    await world.run(REST_MS);
    await world.through(calls, 'add() or remove()');
    const text = await world.through(server, 'the server');
    await world.rest(REST_MS);
    watching.check();
    if (wrong.length > 0)
      throw new Violation(5, `${wrong.join(', ')} is still there although it was removed`);
    checkAllIsTold(history, watching.reports.at(-1));
    if (kind === 'groups') {
      if (!world.isLossy) checkParts(history, watching.reports, scene);
      const told = watcher.current?.files.get(REMOTE)?.content;
      if (told?.toString() !== text) throw new Violation(5, `${REMOTE}: told "${String(told)}"`);
    }
  } finally {
    await world.through(watching.close(), 'close()');
    await world.rest(3_000);
  }
  const { frozenIn } = world.library;
  if (frozenIn !== undefined) throw new Violation(5, `the process waits for ever in ${frozenIn}`);
}

/** A file on a server that hangs for a while. Then it answers, or is unmounted. Resolves to the text that is there at the end. */
async function hangs(world: World): Promise<string | undefined> {
  const { choices, machine } = world;
  const { fs } = machine.process();
  fs.mkdirSync(POINT, 0o755);
  const mount = machine.mount(POINT, { type: 'nfs4' });
  Array.from(write(fs, REMOTE, 'the first text'));
  const [before, pause] = [choices.oneOf(SERVER_PAUSES_MS), choices.oneOf(SERVER_PAUSES_MS)];
  const isUnmounted = choices.choose(2) === 1;
  await world.sleep(before);
  mount.isHung = true;
  world.note('server', 'hangs');
  await world.sleep(pause);
  if (isUnmounted) machine.unmount(mount, { isLazy: true });
  else mount.isHung = false;
  world.note('server', isUnmounted ? 'is unmounted' : 'answers');
  if (isUnmounted) return undefined;
  Array.from(write(fs, REMOTE, 'the last text'));
  return 'the last text';
}

/** Removes a part of a tree, and adds it again. */
async function partOf({ world, watching, isTold, removed }: Program, part: string): Promise<void> {
  const { choices } = world;
  const { watcher } = watching;
  await watching.start();
  for (let round = 0; round < 2; round += 1) {
    await world.sleep(choices.oneOf(PAUSES_MS));
    await watcher.remove(part);
    removed.add(part);
    if (isTold(part) && !world.isLossy) throw new Violation(5, `"${part}" is still there after remove()`);
    await world.sleep(choices.oneOf(PAUSES_MS));
    removed.delete(part);
    await watcher.add(part);
  }
}

/** Removes members of a group and adds them again, and perhaps does not wait until that is told. At the end, all are members. */
async function membersOf(
  { world, watching, isTold, removed }: Program,
  members: readonly string[],
): Promise<void> {
  const { choices } = world;
  const { watcher } = watching;
  const gone = new Set<string>();
  /** The number of the last call for each. */
  const last = new Map<string, number>();
  const calls: Promise<void>[] = [];
  const call = (member: string): Promise<void> => {
    const what = gone.delete(member) ? 'add' : 'remove';
    if (what === 'remove') gone.add(member);
    else removed.delete(member);
    world.note('program', `${what}s ${member}`);
    const number = calls.length;
    last.set(member, number);
    const done = watcher[what](member).then(() => {
      // A member that cannot be read holds up everything else.
      const isHeld = world.isLossy || watcher.status().target === 'unreadable';
      if (what === 'add' || last.get(member) !== number || isHeld) return;
      removed.add(member);
      if (isTold(member)) throw new Violation(5, `"${member}" is still there after remove()`);
    });
    calls.push(heeded(done));
    return done;
  };
  const started = heeded(watching.start());
  if (choices.choose(2) === 0) await started;
  for (let count = 1 + choices.choose(4); count > 0; count -= 1) {
    await world.sleep(choices.oneOf(PAUSES_MS));
    const done = call(choices.oneOf(choices.choose(2) === 0 ? members : [REMOTE]));
    if (choices.choose(2) === 0) await done;
  }
  for (const member of [...gone]) void call(member);
  await Promise.all([started, ...calls]);
}

/** 1: of each volume, the members that are told existed as a whole; others may just have been removed. */
function checkParts(history: History, reports: readonly Report[], { unitOf }: Pick<Scene, 'unitOf'>): void {
  for (const { units, at } of reports)
    for (const [unit, text] of units) {
      if (unit === unitOf(REMOTE, '')) continue;
      const files = text.trimEnd().split(/ (?=\/)/);
      const isThere = history
        .of(unit)
        .some(
          (state) =>
            state.from <= at && state.text !== NOTHING && files.every((file) => has(state.text, file)),
        );
      if (!isThere) throw new Violation(1, `${unit}: "${text}" at ${at.toFixed(1)} never existed as a whole`);
    }
}

/** A promise that is awaited later: by then, it may have been rejected. */
function heeded<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

const has = (state: string, file: string): boolean => ` ${state}`.includes(` ${file} `);
