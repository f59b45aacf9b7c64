/**
 * The events of macOS and Windows, as libuv and `fs.watch` hand them on: late, those of one name merged, and beyond the limit of
 * queued events lost without a word.
 *
 * | what happens                          | macOS: FSEvents                                | Windows: ReadDirectoryChangesW      |
 * |---------------------------------------|------------------------------------------------|-------------------------------------|
 * | a directory is added or removed       | the one stream of the process starts again     | nothing                             |
 * | the watched directory is removed      | nothing is told                                | the error EPERM                     |
 * | it is changed itself, or moved        | nothing is told                                | nothing is told                     |
 * | more events than the limit            | lost, as what waits when the stream starts     | lost, or an event without a name    |
 *
 * A stream of macOS belongs to a path and hears more than this one, which belongs to an inode, when that path leads elsewhere.
 */
import { Errno } from './errors.js';
import { DELETE_SELF, EventQueue, MODIFY, type QueuedEvent, type Watch } from './inotify.js';
import type { Inode } from './inode.js';
import type { Machine } from './machine.js';

/** How long a stream of macOS needs to start, at most, ms. */
const START_MS = 30;

export class LateQueue extends EventQueue {
  readonly #machine: Machine;
  #waiting: QueuedEvent[] = [];
  /** When they are handed on, by `elapsed`, ms. */
  #dueAt = Infinity;
  /** Until when the stream hears nothing. */
  #deafUntil = -Infinity;

  constructor(machine: Machine) {
    super(machine.limits.queuedEvents);
    this.#machine = machine;
  }

  override get nextAt(): number {
    return this.#dueAt;
  }

  get #isMac(): boolean {
    return this.#machine.platform === 'darwin';
  }

  get #isLossy(): boolean {
    return this.maxQueued < 10;
  }

  override watch(inode: Inode, ownName: string, mayAdd: () => boolean): Watch {
    const count = this.watches;
    const watch = super.watch(inode, ownName, mayAdd);
    if (this.watches > count) this.#restart();
    return watch;
  }

  override remove(watch: Watch): void {
    super.remove(watch);
    this.#restart();
  }

  override removeAll(): void {
    super.removeAll();
    this.#waiting = [];
    this.#dueAt = Infinity;
  }

  #restart(): void {
    if (!this.#isMac) return;
    const { elapsed, random } = this.#machine;
    if (this.#isLossy) {
      this.#waiting = [];
      this.#deafUntil = elapsed + random * START_MS;
    }
    this.#wait();
  }

  /** Its latency begins. */
  #wait(): void {
    const { elapsed, random, latencyMs } = this.#machine;
    this.#dueAt = this.#waiting.length === 0 ? Infinity : elapsed + latencyMs * (1 + random);
  }

  override push(id: number, mask: number, name: string): void {
    if (name === '' && (this.#isMac || mask !== DELETE_SELF)) return;
    if (this.#machine.elapsed < this.#deafUntil) return;
    const same = this.#waiting.findIndex((event) => event.id === id && event.name === name);
    const merged = { id, name, mask: mask | (this.#waiting[same]?.mask ?? 0) };
    if (same >= 0) this.#waiting[same] = merged;
    else if (this.#waiting.length < this.maxQueued) this.#waiting.push(merged);
    else if (!this.#isMac && this.#machine.random < 0.5) this.#waiting.push({ id, name: '', mask: MODIFY });
    if (this.#dueAt === Infinity) this.#wait();
  }

  override deliver(): boolean {
    if (this.#machine.elapsed < this.#dueAt) return false;
    const events = this.#waiting;
    this.#waiting = [];
    this.#dueAt = Infinity;
    for (const event of events) this.handle(event);
    return true;
  }

  protected override handle(event: QueuedEvent): void {
    const { id, mask, name } = event;
    if (name !== '') {
      super.handle(event);
      return;
    }
    for (const handle of [...(this.watchOf(id)?.handles ?? [])]) {
      if (mask === DELETE_SELF) handle.fail(new Errno('EPERM').in('watch'));
      else handle.receive('change', null);
    }
  }
}
