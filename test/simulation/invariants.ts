/** What must hold in every schedule. The numbers are those of docs/internals/invariants.md. */
import { enteredKeys, isWithout } from './entered.js';
import { NOTHING, type History, type State } from './history.js';
import { Violation } from './world.js';

/** The content of one report, unit by unit. */
export interface Report {
  /** Ms since the schedule began. */
  readonly at: number;
  readonly units: ReadonlyMap<string, string>;
}

/** How long what is not complete must have been there before it may be reported, ms. */
export interface Patience {
  readonly settleMs: number;
  readonly missingGraceMs: number;
  /** Whether what the first report finds may count as old. Default false. */
  readonly areClocksFar?: boolean;
  /** Whether the first report may lack what is replaced all the time. Default false. */
  readonly mayMiss?: boolean;
  /** How long nothing may be looked at, ms. Default 0. */
  readonly blindMs?: number;
}

const NONE: Patience = { settleMs: 0, missingGraceMs: 0 };

/**
 * 1: what was reported existed as a whole. 2: never back. 3: what is not complete is not reported unless its publisher
 * seems to have stopped.
 * @param since from when on it must have existed, ms.
 */
export function checkReports(
  history: History,
  reports: readonly Report[],
  since: number,
  patience: Patience,
): void {
  const units = new Set([...history.units, ...reports.flatMap((report) => [...report.units.keys()])]);
  for (const unit of units) {
    const states = history.of(unit);
    let index = states.findIndex(({ to }) => to >= since);
    let wasTold = false;
    for (const [count, report] of reports.entries()) {
      const text = report.units.get(unit) ?? NOTHING;
      wasTold ||= text !== NOTHING;
      // What comes during the start and is being written is told when it is complete.
      if (!wasTold && isBusy(states, report.at, patience)) {
        if (patience.mayMiss || !wasAlwaysComplete(states, since, report.at)) continue;
        throw new Violation(
          3,
          `${unit}: was always there, as a whole, but is not in the report at ${report.at.toFixed(1)}`,
        );
      }
      const isOfStart = patience.areClocksFar === true && text === reports[0]?.units.get(unit);
      const mine = isOfStart ? NONE : patience;
      const entered = enteredKeys(history, unit, since, report, reports[count - 1]);
      const found = states.findIndex(
        (state, at) =>
          at >= index &&
          (isFoundAs(state, text) || isWithout(text, state.text, entered)) &&
          isDue(state, seenSince(states, at), report.at, mine),
      );
      if (found < 0) throw wrongReport(unit, text, states, index, report.at);
      index = found;
    }
  }
}

/** Whether a look may find this, perhaps by another spelling of its name. */
const isFoundAs = ({ text, folded }: State, found: string): boolean => text === found || folded.has(found);

/**
 * Whether it was replaced time after time, whole each time, and was there at every instant. One that has had a text or two
 * since may have been written in place with the same text, or renamed from a file that was: the history does not show it.
 */
function wasAlwaysComplete(states: readonly State[], since: number, at: number): boolean {
  const seen = states.filter(({ from, to }) => to >= since && from <= at);
  const isWhole = ({ text, isPublished, writtenAt }: State): boolean =>
    text !== NOTHING && isPublished && writtenAt < since;
  return seen.length > 2 && seen.every(isWhole);
}

/** Twice the longest grace, ms. */
const LONG_MS = 1_000;

/** Whether what is there at this time is not complete, or so new that it may be about to change again. */
function isBusy(states: readonly State[], at: number, { blindMs = 0 }: Patience): boolean {
  const now = states.findLast(({ from }) => from <= at);
  return now !== undefined && (!now.isPublished || at - now.from <= LONG_MS + blindMs);
}

/** The text of an empty file, or the identity of one that was not read. */
const EMPTY_FILE = /=(?:stat:\d+:\d+:0:\S+)? $/;

function isDue(
  { from, to, text, isPublished }: State,
  since: number,
  at: number,
  patience: Patience,
): boolean {
  if (from > at) return false;
  const { settleMs, missingGraceMs } = patience;
  return isPublished || Math.min(to, at) - since >= (isEmpty(text) ? missingGraceMs : settleMs);
}

/** Since when looks may have seen this, ms: a file that came and went within one of them may have been seen by none. */
function seenSince(states: readonly State[], index: number): number {
  const { text, from } = states[index] ?? { from: 0 };
  if (text !== NOTHING) return from;
  const before = states.slice(0, index).findLastIndex((state) => state.text === NOTHING);
  const isUnseen = before >= 0 && !states.slice(before + 1, index).some(({ wasSeen }) => wasSeen);
  return isUnseen ? seenSince(states, before) : from;
}

const isEmpty = (text: string): boolean => text === NOTHING || EMPTY_FILE.test(text);

function wrongReport(
  unit: string,
  text: string,
  states: readonly State[],
  index: number,
  at: number,
): Violation {
  const same = states.findIndex((state) => isFoundAs(state, text) && state.from <= at);
  const what = `${unit}: "${text}" at ${at.toFixed(1)}`;
  if (same < 0) return new Violation(1, `${what} never existed as a whole`);
  if (same < index) return new Violation(2, `${what} came after a later state`);
  return new Violation(3, `${what} was not complete`);
}

export interface HowLong extends Patience {
  /** How often it is asked without events, ms. */
  readonly pollMs: number;
  /** Whether all units are reported when the last of them is due. */
  readonly areTogether: boolean;
}

/** Timers have whole milliseconds, and a difference whose time comes during a look is looked at once more. */
const ROUNDING_MS = 2;

/** Another look at a target that was replaced during all attempts of a start comes later, ms. */
const RETRY_MS = 5;

/**
 * 13: once nobody changes anything, what waits for nothing is told without time passing, and everything else when its
 * quiet period is over.
 * @param quietSince since when, ms.
 */
export function checkInTime(
  history: History,
  reports: readonly Report[],
  quietSince: number,
  { settleMs, missingGraceMs, pollMs, areTogether }: HowLong,
): void {
  const units = [...history.units];
  const heldMs = (unit: string): number => {
    const { text } = history.of(unit).at(-1) ?? { text: NOTHING };
    return isEmpty(text) ? Math.max(settleMs, missingGraceMs) : settleMs;
  };
  const longestMs = Math.max(...units.map(heldMs));
  for (const unit of units) {
    const last = reports.at(-1)?.units.get(unit);
    const first = reports.findLastIndex((report) => report.units.get(unit) !== last) + 1;
    const at = reports[first]?.at ?? 0;
    // A target that is missing at the start is not told.
    if (areTogether && first === 0 && last === undefined) continue;
    // One that is due waits for the others.
    const waitMs = areTogether || first === 0 ? longestMs : 2 * heldMs(unit);
    const lateMs = at - quietSince - waitMs - pollMs;
    if (lateMs <= (waitMs === 0 ? 0 : ROUNDING_MS + (first === 0 ? RETRY_MS : 0))) continue;
    throw new Violation(13, `${unit}: told at ${at.toFixed(1)}, ${lateMs.toFixed(1)} ms late`);
  }
}

/** How long a first report may take while others write, ms: the graces that one after another may have, and lookups. */
const LONGEST_START_MS = 1_200;

/** 12: the first report waits for nobody who writes. */
export function checkStart({ at }: Report, since: number): void {
  if (at - since <= LONGEST_START_MS) return;
  throw new Violation(12, `the first report came ${(at - since).toFixed(1)} ms after the start`);
}

/**
 * 5: after the last change, everything has been told.
 * @param unheard files of which no event told that they are gone. @param held of which no event told at all.
 */
export function checkAllIsTold(
  history: History,
  last: Report | undefined,
  unheard: ReadonlySet<string> = new Set(),
  held: ReadonlySet<string> = new Set(),
): void {
  for (const unit of history.units) {
    const text = history.of(unit).at(-1)?.text ?? NOTHING;
    const told = last?.units.get(unit) ?? NOTHING;
    if (held.has(unit) || (text === NOTHING && unheard.has(unit))) continue;
    if (told !== text) throw new Violation(5, `${unit}: told "${told}", but there is "${text}"`);
  }
}
