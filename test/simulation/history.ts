import type { Fs } from './actors/calls.js';
import { byUnit, type UnitOf, type View } from './views.js';
import type { World } from './world.js';

/**
 * What existed, and when. A unit is what must be reported as a whole: a volume, or a plain file. A state of a unit is
 * everything that one target shows of it, as text.
 */
export interface State {
  readonly text: string;
  /** Ms since the schedule began; `to` is `Infinity` for the last one. */
  readonly from: number;
  to: number;
  /** Whether it existed at a moment in which nobody was in the middle of a publication. */
  isPublished: boolean;
  /** How many calls the library had made when it began, */
  readonly calls: number;
  /** and whether those while it lasted were more than to find and open it, so that a look has seen it. */
  wasSeen: boolean;
  /** When its file was last being written in place, ms: also with the text that it has. */
  writtenAt: number;
  /** What was there meanwhile by another spelling of its name, which a lookup folds. */
  readonly folded: Set<string>;
}

export const NOTHING = '';

const NEVER = {
  text: NOTHING,
  from: 0,
  isPublished: true,
  calls: 0,
  wasSeen: true,
  writtenAt: -Infinity,
  folded: new Set<string>(),
} as const;

export class History {
  readonly #states = new Map<string, State[]>();

  /** All states of a unit, in order. */
  of(unit: string): readonly State[] {
    return this.#states.get(unit) ?? [{ ...NEVER, to: Infinity }];
  }

  get units(): Iterable<string> {
    return this.#states.keys();
  }

  /** What is there now. @param world knows who is in the middle of a publication. */
  note(views: ReadonlyMap<string, string>, world: World): void {
    this.#noteUnits(views, world);
    if (world.machine.platform !== 'linux') this.#noteSpellings(views, world);
  }

  /** What has one spelling of a name is found by the others, too. */
  #noteSpellings(views: ReadonlyMap<string, string>, { machine }: World): void {
    for (const [unit, states] of this.#states) {
      for (const [other, text] of views) {
        if (other === unit || machine.fold(other) !== machine.fold(unit)) continue;
        const [shown] = states.filter((state) => state.text !== NOTHING);
        if (shown) states.at(-1)?.folded.add(shown.text.replace(/=.*/s, text.slice(text.indexOf('='))));
      }
    }
  }

  #noteUnits(views: ReadonlyMap<string, string>, { now, calls, isPartial, isWritten }: World): void {
    for (const unit of new Set([...this.#states.keys(), ...views.keys()])) {
      const text = views.get(unit) ?? NOTHING;
      let states = this.#states.get(unit);
      if (!states) this.#states.set(unit, (states = now > 0 ? [{ ...NEVER, to: now }] : []));
      const last = states.at(-1);
      if (last?.text === text) {
        last.isPublished ||= !isPartial(unit);
        if (isWritten(unit)) last.writtenAt = now;
        continue;
      }
      if (last) {
        last.to = now;
        const name = unit.slice(unit.lastIndexOf('/'));
        const isAbout = (call: string): boolean =>
          `${call}/`.includes(`${name}/`) || call.startsWith('readdir');
        last.wasSeen = calls.slice(last.calls).filter(isAbout).length > 2;
      }
      const writtenAt = isWritten(unit) ? now : -Infinity;
      states.push({
        text,
        from: now,
        to: Infinity,
        isPublished: !isPartial(unit),
        calls: calls.length,
        wasSeen: true,
        writtenAt,
        folded: new Set(),
      });
    }
  }
}

/** What a target shows, noted after each step of the world. */
export function historyOf(world: World, see: (fs: Fs) => View, unitOf: UnitOf): History {
  const history = new History();
  const observer = world.machine.process();
  const note = (): void => history.note(byUnit(see(observer.fs), unitOf), world);
  note();
  world.afterStep.push(note);
  return history;
}
