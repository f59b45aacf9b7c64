/** Who owns what a program writes, and who may read it, by the rules of docs/atomic-writes.md: a second reader of that page. */
import { CREATE, exists, type Fs } from '../actors/calls.js';
import { setUser } from '../globals.js';
import { Violation, type World } from '../world.js';

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

interface Attributes extends Owner {
  readonly mode: number;
}

/** The options of one write. */
export interface How {
  readonly mode?: number | 'keep';
  readonly owner?: Owner;
}

const UMASKS = [0o022, 0o077, 0, 0o177, 0o777];
const DIRECTORIES = [0o755, 0o2775, 0o1777];
const GROUP = 8;
const USER = 1_000;
const SET_GROUP = 0o2000;

/** What is there before anybody writes. */
export const OLD_TEXT = 'what was there';
const EXISTING: readonly Attributes[] = [
  { mode: 0o664, uid: USER, gid: USER },
  { mode: 0o6755, uid: 5, gid: 6 },
  { mode: 0o660, uid: USER, gid: 6 },
  { mode: 0o640, uid: 5, gid: USER },
];

export class Rights {
  readonly umask: number;
  /** The user of all programs. */
  readonly uid: number;
  readonly #world: World;
  readonly #isVolume: boolean;
  readonly #directory: Attributes;
  readonly #path: string;
  /** What readers have found, one after another; undefined: nothing. */
  readonly #states: (string | undefined)[] = [undefined];
  /** How each text is written, and the state at which that began. */
  readonly #writes = new Map<string, { readonly how: How; readonly from: number }>();
  readonly #found = new Map<string, string>();

  /** Draws everything, sets the attributes of the directory, and may make a file. @param mayBeUser whether root need not write. */
  constructor(world: World, fs: Fs, directory: string, isVolume: boolean, mayBeUser: boolean) {
    const { choices } = world;
    this.#world = world;
    this.#isVolume = isVolume;
    this.#path = `${directory}/x`;
    this.umask = choices.oneOf(UMASKS);
    this.uid = mayBeUser ? choices.oneOf([0, 0, USER]) : 0;
    setUser(this.uid);
    const mode = choices.oneOf(DIRECTORIES);
    // Who may not use a new directory changes its mode, and so loses the group of others.
    const isDenied = (this.umask & 0o700) !== 0;
    const isLost = this.uid !== 0 && isDenied;
    this.#directory = { mode, uid: this.uid, gid: mode & SET_GROUP && !isLost ? GROUP : this.uid };
    fs.chownSync(directory, this.uid, this.#directory.gid);
    fs.chmodSync(directory, mode);
    // One that is killed before that leaves a directory that no other writer can use.
    if (isVolume && isDenied) {
      const { uid, gid, mode: own } = this.#ofVolume;
      fs.mkdirSync(this.#path, 0o755);
      fs.chownSync(this.#path, uid, gid);
      fs.chmodSync(this.#path, own);
    }
    const existing = isVolume ? undefined : choices.oneOf([undefined, ...EXISTING]);
    if (!existing) return;
    const fd = fs.openSync(this.#path, CREATE, 0o600);
    fs.writeSync(fd, Buffer.from(OLD_TEXT), 0, OLD_TEXT.length, null);
    // In a directory such as /tmp, files of others are refused.
    fs.fchownSync(fd, this.#isSticky ? this.uid : existing.uid, existing.gid);
    fs.fchmodSync(fd, existing.mode);
    fs.fsyncSync(fd);
    fs.closeSync(fd);
    this.#writes.set(OLD_TEXT, { how: {}, from: 0 });
    this.#found.set(OLD_TEXT, this.#see(fs));
    this.#states[0] = this.#see(fs);
  }

  get hasFile(): boolean {
    return this.#writes.has(OLD_TEXT);
  }

  /** A write of this text begins; the same text is written in the same way again. */
  begins(text: string, fs: Fs | undefined): How {
    const how = this.#writes.get(text)?.how ?? this.#draw();
    if (fs && !this.#isVolume) this.#states.push(exists(fs, this.#path) ? this.#see(fs) : undefined);
    this.#writes.set(text, { how, from: this.#states.length - 1 });
    return how;
  }

  /** Whether this text was written as a whole. */
  knows(text: string | undefined): text is string {
    return text !== undefined && text !== OLD_TEXT && this.#found.has(text);
  }

  #draw(): How {
    const { choices } = this.#world;
    const modes = this.#isVolume ? [undefined, 0o400, 0o4750] : [undefined, 'keep' as const, 0o640, 0o4750];
    const mode = choices.oneOf(modes);
    const owner =
      this.uid === 0 && !this.#isSticky && choices.choose(4) === 3 ? { uid: 7, gid: GROUP } : undefined;
    return { ...(mode !== undefined && { mode }), ...(owner && { owner }) };
  }

  /** Readers find this text now; undefined: nothing. @param isAgain after a power cut. */
  check(text: string | undefined, fs: Fs, isAgain = false): void {
    const write = this.#writes.get(text ?? '');
    const found = write && this.#see(fs);
    const before = this.#states.slice(write?.from);
    this.#states.push(found);
    if (!write || found === undefined || text === undefined) return;
    const known = this.#found.get(text);
    this.#found.set(text, found);
    const ofNew = this.#isVolume
      ? [this.#volume(write.how)]
      : before.map((state) => asText(this.#file(state, write.how)));
    // As it was, while it is written again.
    const isOld = isAgain || text === OLD_TEXT;
    const allowed = new Set(known === undefined ? ofNew : isOld ? [known] : [known, ...ofNew]);
    if (!allowed.has(found))
      throw new Violation(10, `"${text}" is ${found} instead of ${[...allowed].join(' or ')}`);
  }

  get #isSticky(): boolean {
    return (this.#directory.mode & 0o1000) !== 0;
  }

  /** Whose a new file is. */
  get #created(): Owner {
    return { uid: this.uid, gid: this.#directory.mode & SET_GROUP ? this.#directory.gid : this.uid };
  }

  /** The directory of a volume. */
  get #ofVolume(): Attributes {
    const mode = (0o777 & ~this.umask) | 0o700 | (this.#directory.mode & SET_GROUP);
    return { ...this.#created, mode };
  }

  #see(fs: Fs): string {
    if (!this.#isVolume) return asText(attributesOf(fs, this.#path));
    const revision = `${this.#path}/${fs.readlinkSync(`${this.#path}/..data`)}`;
    const found = new Set([`directory ${asText(attributesOf(fs, this.#path))}`]);
    const enter = (path: string): void => {
      found.add(`revision ${asText(attributesOf(fs, path))}`);
      for (const entry of fs.readdirSync(path, { withFileTypes: true })) {
        if (entry.isDirectory()) enter(`${path}/${entry.name}`);
        else found.add(`file ${asText(attributesOf(fs, `${path}/${entry.name}`))}`);
      }
    };
    enter(revision);
    return [...found].join(', ');
  }

  #volume({ mode, owner }: How): string {
    const created = this.#created;
    const file = { ...(owner ?? created), mode: Number(mode ?? 0o644) };
    return `directory ${asText(this.#ofVolume)}, revision ${asText({ ...created, mode: 0o755 })}, file ${asText(file)}`;
  }

  /** @param before the file that is replaced. */
  #file(before: string | undefined, { mode, owner }: How): Attributes {
    const created = this.#created;
    const existing = before === undefined ? undefined : fromText(before);
    const wanted = owner ?? existing ?? created;
    const hasGroup = this.uid === 0 || [created.gid, this.uid].includes(wanted.gid);
    const isOwned = this.uid === 0 || (hasGroup && wanted.uid === this.uid);
    const mine = { uid: isOwned ? wanted.uid : created.uid, gid: hasGroup ? wanted.gid : created.gid };
    const isMember = this.uid === 0 || mine.gid === this.uid;
    const possible = (isOwned ? 0o7777 : 0o777) & (isMember ? 0o7777 : ~SET_GROUP);
    if (typeof mode === 'number') return { ...mine, mode: mode & possible };
    if (!existing) return { ...mine, mode: 0o600 };
    if (this.#isSticky) return { ...mine, mode: existing.mode & 0o600 };
    const isKept = mode === 'keep' && hasGroup;
    return { ...mine, mode: (isKept ? existing.mode : withoutGroup(existing.mode)) & possible };
  }
}

/** The group gets what everybody has. */
const withoutGroup = (mode: number): number => (mode & 0o7707) | ((mode & 0o7) << 3);

function attributesOf(fs: Fs, path: string): Attributes {
  const stat = fs.lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (!stat) throw new Error(`there is no ${path}`);
  return { mode: Number(stat.mode) & 0o7777, uid: Number(stat.uid), gid: Number(stat.gid) };
}

const asText = ({ mode, uid, gid }: Attributes): string => `${mode.toString(8)} ${uid}:${gid}`;

function fromText(text: string): Attributes {
  const [mode = '', uid, gid] = text.split(/[ :]/);
  return { mode: parseInt(mode, 8), uid: Number(uid), gid: Number(gid) };
}
