/** Programs that write the same file or volume with the library, and readers that look before each system call. */
import { WriteError } from '../../../src/index.js';
import { CONTAINER, processes } from '../behind.js';
import { Errno, type Process } from '../machine/machine.js';
import type { Mount } from '../machine/mounts.js';
import { Violation, type World } from '../world.js';
import { FILE, VOLUME, type Durability, type Medium } from './media.js';
import { Mounting } from './mounting.js';
import { OLD_TEXT, Rights } from './rights.js';

/** What happens to a program, once. */
const FATES = ['nothing', 'kill', 'power cut', 'failure', 'hang', 'mount'] as const;
const FAILURES = ['EIO', 'ENOSPC', 'EACCES', 'EMFILE', 'EINTR'];

const LOOKUPS = ['lstat', 'fstat', 'readlink', 'readdir', 'read', 'close', 'fsync'];

/** What an error says while something is mounted: over the path, or over what is being written. */
const REFUSALS: readonly string[] = ['ERR_WRITE_MOUNTED', 'ERR_WRITE_CONFLICT'];

/** Here, or in a container. Writes to different paths do not wait for each other, so there are links to it. */
const DIRECTORIES = ['/w', '/w', `${CONTAINER}/w`];
const LINKS = ['/l1', '/l2'];

/** How long a server does not answer, ms. */
const HANGS_MS = 3_000;

const LAST_TEXT = 'the last text';

/** Somebody else's file, which is written meanwhile. */
const BESIDE = '/beside';

export class Writing {
  readonly #world: World;
  readonly #medium: Medium;
  readonly #durability: Durability;
  readonly #fate: (typeof FATES)[number];
  #callsLeft: number;
  #isMet = false;
  /** What was found between two calls. A program may ignore that a call fails. */
  readonly #violations: unknown[] = [];
  #isRecovering = false;
  #mayHaveChanged = false;
  readonly #directory: string;
  readonly #rights: Rights;
  /** Whether a power cut loses nothing else. */
  readonly #isOnDisk: boolean;
  /** Where the directory is, if that may hang. */
  readonly #server: Mount | undefined;
  #isHeldUp = false;
  /** Ends when that answers again, and what is written meanwhile has been written. */
  #hanging: Promise<void> = Promise.resolve();
  /** Who mounts something over it, if that is the fate. */
  readonly #mounting: Mounting | undefined;
  /** What the last writer could not do after its write. */
  #left: unknown;
  /** Why the last write has failed. */
  #refusal: unknown;
  #observer: Process;
  /** What may be found: what was there at the beginning, and what was written or may have been. */
  readonly #possible = new Set<string | undefined>();
  /** What readers have found, in this order. */
  readonly #found: (string | undefined)[] = [];
  /** The first of them that a power cut must not lose. */
  #durableFrom = 0;
  /** How often everything may have been removed. */
  #clears = 0;
  readonly #programs: Process[] = [];

  constructor(world: World, medium: Medium) {
    const { choices, machine } = world;
    this.#world = world;
    this.#medium = medium;
    this.#durability = choices.oneOf(['full', 'file', 'none'] as const);
    this.#fate = choices.oneOf(FATES);
    this.#callsLeft = this.#fate === 'nothing' ? Infinity : choices.choose(medium.calls);
    this.#observer = machine.process({ isContained: true });
    const { fs } = machine.process();
    const isCut = this.#fate === 'power cut';
    const type = isCut ? 'ext4' : choices.oneOf(['ext4', 'tmpfs', 'nfs4']);
    // What is in a container is lost with it, and has mounts of its own.
    this.#directory = isCut || this.#fate === 'mount' ? '/w' : choices.oneOf(DIRECTORIES);
    this.#isOnDisk = type === 'ext4' && this.#directory === '/w';
    const container = processes(world);
    fs.mkdirSync(this.#directory, 0o755);
    fs.symlinkSync(this.#directory, '/l1');
    fs.symlinkSync(this.#directory.slice(1), '/l2');
    if (this.#directory !== '/w') this.#server = container;
    else if (type !== 'ext4') {
      const mount = machine.mount(this.#directory, { type });
      if (type === 'nfs4') this.#server = mount;
    }
    // What "file" promises needs a journal.
    machine.root.mount.storage.hasJournal = this.#durability !== 'full' || choices.choose(2) === 0;
    const mayBeUser = this.#directory === '/w' && this.#fate !== 'hang';
    this.#rights = new Rights(world, fs, this.#directory, medium === VOLUME, mayBeUser);
    if (this.#fate === 'mount') {
      this.#mounting = new Mounting(world, `${this.#directory}/x`, medium === VOLUME, this.#rights.uid);
    }
    machine.syncNames();
    this.#possible.add(this.#rights.hasFile ? OLD_TEXT : undefined);
  }

  /** In the middle of a path, the kernel follows them before the library can know that they lead into a container. */
  get #links(): readonly string[] {
    return this.#fate === 'hang' && this.#directory !== '/w' && this.#medium !== FILE ? [] : LINKS;
  }

  /** Several programs write, and nothing else goes on. */
  async run(): Promise<void> {
    const { choices } = this.#world;
    this.#look();
    const ways = [this.#directory, ...this.#links].slice(0, 1 + choices.choose(3));
    const programs = ways.map((way, index) => this.#program(`${way}/x`, index));
    // All of them, because writes of one process wait for each other.
    const outcomes = await this.#world.through(Promise.allSettled(programs), 'a write');
    await this.#world.through(this.#hanging, 'a write beside a server that hangs');
    this.#throwFound();
    for (const { frozenIn } of this.#programs)
      if (frozenIn !== undefined) throw new Violation(5, `the process waits for ever in ${frozenIn}`);
    if (this.#isHeldUp) throw new Violation(12, 'while a server hangs, nothing else is written');
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason as Error;
    this.#look();
    if (this.#fate === 'power cut' && !this.#isMet) this.#cut('nobody');
    if (this.#isCut) this.#checkAfterCut();
    else if (!this.#isMet) this.#checkAtRest();
    if (this.#mounting) await this.#whileMounted(this.#mounting);
    try {
      await this.#world.through(this.#recover(), 'a write');
    } finally {
      this.#throwFound();
    }
    this.#mounting?.checkSwept();
    for (const process of this.#programs) {
      const { descriptors } = process.leftovers();
      if (descriptors > 0) throw new Violation(7, `after a write, ${descriptors} descriptors are left`);
    }
    this.#checkLast();
  }

  async #program(way: string, index: number): Promise<void> {
    const { choices } = this.#world;
    const name = `writer ${index}`;
    const process = this.#process(name);
    for (let count = 1 + choices.choose(3), number = 1; number <= count; number += 1) {
      if (process.isKilled || this.#isCut) return;
      const text = `text ${number} of ${index}${' '.repeat(choices.choose(3))}`;
      const isSync = this.#fate !== 'hang' && this.#medium.writeSync !== undefined && choices.choose(3) === 2;
      if (this.#medium.clear && choices.choose(5) === 4) await this.#clear(name, process, way);
      else await this.#write(name, process, way, text, isSync);
    }
  }

  async #clear(name: string, process: Process, way: string): Promise<void> {
    this.#world.note(name, 'clears');
    this.#clears += 1;
    try {
      await this.#medium.clear?.(process.fs, way, this.#durability);
    } catch (error) {
      this.#look();
      this.#failed(name, process, undefined, error);
      return;
    }
    this.#look();
    this.#world.note(name, 'has cleared');
    const at = this.#found.lastIndexOf(undefined);
    if (at < 0) throw new Violation(10, 'it is reported as cleared, and readers never saw that');
    if (this.#durability === 'full') this.#durableFrom = Math.max(this.#durableFrom, at);
  }

  async #write(name: string, process: Process, way: string, text: string, isSync: boolean): Promise<void> {
    const { fs } = process;
    const { write: writeSoon, writeSync } = this.#medium;
    this.#world.note(name, `writes "${text}"`);
    this.#possible.add(text);
    const how = this.#rights.begins(text, this.#server?.isHung ? undefined : this.#observer.fs);
    try {
      if (isSync) writeSync?.(fs, way, text, this.#durability, how);
      else this.#left = await writeSoon(fs, way, text, this.#durability, how);
    } catch (error) {
      this.#look();
      this.#failed(name, process, text, error);
      return;
    }
    this.#look();
    this.#world.note(name, `has written "${text}"`);
    const at = this.#found.indexOf(text);
    if (at < 0) throw new Violation(10, `"${text}" is reported as written, and readers never saw it`);
    if (this.#durability === 'full') this.#durableFrom = Math.max(this.#durableFrom, at);
  }

  /** @throws {Violation} if the error says something about readers that is wrong. */
  #failed(name: string, { isKilled }: Process, text: string | undefined, error: unknown): void {
    this.#world.note(name, `fails: ${(error as Error).message}`);
    // Nobody hears what it says.
    if (isKilled) return;
    if (!(error instanceof WriteError) || !this.#isMet || this.#fate === 'hang') throw error;
    this.#refusal = error;
    if (this.#mounting && !REFUSALS.includes(error.code)) throw error;
    // What is not there may not have been there before.
    if (text === undefined) return;
    const wasFound = this.#found.includes(text);
    const { published } = error;
    if (published !== null && published !== wasFound) {
      const saw = wasFound ? 'saw it' : 'never saw it';
      throw new Violation(10, `published: ${published} for "${text}", and readers ${saw}`);
    }
    if (published === false) this.#possible.delete(text);
  }

  /** A program that begins while something is mounted writes what it can, and says what it cannot do. */
  async #whileMounted(mounting: Mounting): Promise<void> {
    const { choices } = this.#world;
    if (!this.#isMet) {
      this.#isMet = true;
      mounting.mount(true);
    }
    mounting.check();
    const name = 'a writer';
    const path = `${this.#directory}/x`;
    this.#refusal = this.#left = undefined;
    if (this.#medium.clear && choices.choose(3) === 2) {
      await this.#world.through(this.#clear(name, this.#process(name), path), 'a clear');
      this.#left = this.#refusal;
    } else
      await this.#world.through(this.#write(name, this.#process(name), path, 'meanwhile', false), 'a write');
    this.#throwFound();
    mounting.check();
    mounting.checkErrors(this.#refusal, this.#left);
    mounting.unmount();
  }

  /** The next program finds nothing that hinders it. It may write what is there. */
  async #recover(): Promise<void> {
    const { choices } = this.#world;
    this.#isRecovering = true;
    this.#syncAbove();
    this.#found.length = 0;
    this.#durableFrom = this.#clears = 0;
    this.#callsLeft = Infinity;
    const before = this.#medium.see(this.#observer.fs, `${this.#directory}/x`);
    const text = this.#rights.knows(before) && choices.choose(3) === 2 ? before : LAST_TEXT;
    const name = 'the next writer';
    await this.#write(name, this.#process(name), `${this.#directory}/x`, text, false);
    this.#checkAtRest();
    const found = this.#found.at(-1);
    if (found !== text) throw new Violation(10, `at the end, readers find ${String(found)}`);
    // The same text may have another owner and mode now.
    this.#rights.check(found, this.#observer.fs);
  }

  /** Only the writer that has created the directory of a volume syncs its name, and may have been killed before that. */
  #syncAbove(): void {
    const { fs } = this.#observer;
    const { hasJournal } = this.#world.machine.root.mount.storage;
    if (hasJournal || this.#medium === FILE) return;
    const fd = fs.openSync(this.#directory, 0);
    fs.fsyncSync(fd);
    fs.closeSync(fd);
  }

  /** Nothing of what was written last is lost. */
  #checkLast(): void {
    const text = this.#found.at(-1);
    if (this.#durability !== 'full' || !this.#isOnDisk) return;
    this.#cut('nobody');
    const found = this.#medium.seeAtRest(this.#observer.fs, `${this.#directory}/x`);
    if (found !== text) throw new Violation(11, `a power cut at the end loses a part: ${String(found)}`);
    this.#rights.check(found, this.#observer.fs, true);
  }

  #process(name: string): Process {
    const process = this.#world.machine.process({
      uid: this.#rights.uid,
      umask: this.#rights.umask,
      maxWriteBytes: this.#world.choices.oneOf([Infinity, 4]),
      before: (call, path) => {
        // Readers find nothing else after a call that only looks.
        if (this.#mayHaveChanged) this.#lookBetween();
        this.#mayHaveChanged = !LOOKUPS.includes(call);
        if (!this.#isMet && (this.#callsLeft -= 1) < 0) this.#meet(name, process);
        this.#world.note(name, call, path);
      },
    });
    if (this.#mounting) process.hasMountIds = this.#mounting.hasMountIds;
    this.#programs.push(process);
    return process;
  }

  #meet(name: string, process: Process): void {
    const { choices } = this.#world;
    this.#isMet = true;
    this.#world.note(name, `meets: ${this.#fate}`);
    if (this.#fate === 'kill') process.kill();
    if (this.#fate === 'failure') throw new Errno(choices.oneOf(FAILURES));
    if (this.#fate === 'power cut') this.#cut(name);
    this.#mounting?.mount(false);
    if (this.#fate === 'hang' && this.#server) this.#hanging = this.#hang(this.#server, process);
  }

  /** Before a call of this program, or when all that was begun has ended. */
  #cut(name: string): void {
    const { machine } = this.#world;
    this.#isMet = true;
    this.#world.note(name, 'has no power');
    machine.powerCut();
    this.#observer = machine.process({ isContained: true });
  }

  /** What the server is asked meanwhile is answered later, and the program goes on with the rest. */
  async #hang(server: Mount, { fs }: Process): Promise<void> {
    server.isHung = this.#isHeldUp = true;
    const answers = this.#world.sleep(HANGS_MS).then(() => (server.isHung = false));
    await FILE.write(fs, BESIDE, 'beside', this.#durability, {});
    this.#isHeldUp = !server.isHung;
    await answers;
  }

  get #isCut(): boolean {
    return this.#isMet && this.#fate === 'power cut' && !this.#isRecovering;
  }

  #lookBetween(): void {
    try {
      this.#look();
    } catch (error) {
      this.#violations.push(error);
      throw error;
    }
  }

  #throwFound(): void {
    for (const violation of this.#violations) throw violation as Error;
  }

  #look(): void {
    if (this.#server?.isHung) return;
    const found = this.#medium.see(this.#observer.fs, `${this.#directory}/x`);
    if (found === this.#found.at(-1) && this.#found.length > 0) return;
    this.#world.note('readers', `find ${found === undefined ? 'nothing' : `"${found}"`}`);
    if (this.#isCut) return;
    if (!this.#possible.has(found)) throw new Violation(10, `readers find ${String(found)}`);
    const wasThere = this.#found.filter((each) => each === found).length;
    if (wasThere > (found === undefined ? this.#clears : 0))
      throw new Violation(2, `readers find ${String(found)} again`);
    this.#found.push(found);
    this.#rights.check(found, this.#observer.fs);
  }

  #checkAtRest(): void {
    const found = this.#medium.seeAtRest(this.#observer.fs, `${this.#directory}/x`);
    if (found !== this.#found.at(-1))
      throw new Violation(10, `once all is written, readers find ${String(found)}`);
  }

  #checkAfterCut(): void {
    const found = this.#medium.see(this.#observer.fs, `${this.#directory}/x`);
    const at = this.#found.lastIndexOf(found);
    this.#possible.add(found);
    if (this.#durability === 'none') return;
    if (at < 0) throw new Violation(10, `after a power cut, readers find ${String(found)}`);
    this.#rights.check(found, this.#observer.fs, true);
    if (at < this.#durableFrom)
      throw new Violation(11, `a power cut loses what was written: ${String(found)}`);
  }
}
