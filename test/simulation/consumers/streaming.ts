/** Programs that take changes from a stream, and programs that end a watcher with a signal. */
import { ClosedError, type Change } from '../../../src/index.js';
import { Violation } from '../world.js';
import type { Habit } from './habits.js';
import { isSame, summedUp, textOf } from './watching.js';

const PAUSES_MS = [0, 5, 40, 400];

/** Longer than the events that a schedule has one after another, ms. */
const LONG_MS = 2_000;

const reasonOf = (error: unknown): unknown => error;

export const STREAMS: Readonly<Record<string, Habit>> = {
  /** 4, 5: what a slow consumer takes sums up, too, and ends with what was told last. 7: it ends with the watcher. */
  async iterates({ world, watching }) {
    const { watcher } = watching;
    let last: Change | undefined;
    const iterate = async (): Promise<void> => {
      for await (const change of watcher) {
        if (last && !isSame(textOf(last.current), textOf(change.previous)))
          throw new Violation(4, 'previous is not what was taken last');
        const violation = summedUp(change);
        if (violation) throw violation;
        last = change;
        world.note('program', `takes ${[...textOf(change.current)].join('| ')}`);
        await world.sleep(world.choices.oneOf(PAUSES_MS));
      }
    };
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    const iterated = iterate();
    await world.sleep(LONG_MS);
    const closed = watching.close();
    await iterated;
    await closed;
    const told = watching.reports.length > 0 ? watcher.current : undefined;
    if (told && !(last && isSame(textOf(last.current), textOf(told))))
      throw new Violation(5, 'what was told last cannot be taken');
    await watching.restart();
  },

  /** 7: the same as after `close()`; calls reject with the reason of the signal. */
  async aborts({ world, watching }) {
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    await watching.close();
    const controller = new AbortController();
    const reason = new Error('the program ends');
    const started = watching.restart(controller.signal).catch(reasonOf);
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    watching.closes(() => controller.abort(reason));
    const failure = await started;
    if (failure !== undefined && failure !== reason) throw failure as Error;
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    const { watches } = world.library.leftovers();
    if (watches > 0) throw new Violation(7, `after the signal, ${watches} watches are left`);
    const refused = await watching.watcher.start().catch(reasonOf);
    if (refused !== reason && !(refused instanceof ClosedError))
      throw new Violation(7, 'a watcher whose signal has aborted starts');
    await world.sleep(world.choices.oneOf(PAUSES_MS));
    await watching.restart();
  },
};
