import { rounds } from './rounds.js';

/** The CPU time of a call, ms. */
function costOf(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  return process.cpuUsage(before).user / 1_000;
}

/** Below this, what the machine does besides cannot be told from the call, ms. */
const MEASURABLE_MS = 160;

/** What a pattern that takes the square of it needs seconds for. */
const LONGEST = rounds(64_000, 256_000);

/**
 * Whether `work` takes clearly more than four times the CPU for a text of four times the length, at the first length that
 * takes long enough to measure.
 */
export function growsTooFast(work: (text: string) => unknown, textOf: (length: number) => string): boolean {
  for (let length = 4_000; length <= LONGEST; length *= 4) {
    const [text, quarter] = [textOf(length), textOf(length / 4)];
    if (costOf(() => work(text)) < MEASURABLE_MS) continue;
    // The smallest of three, which other work of the machine raises least.
    const [long, short] = [text, quarter].map((each) =>
      Math.min(...[0, 1, 2].map(() => costOf(() => work(each)))),
    );
    return (long ?? 0) > MEASURABLE_MS && (long ?? 0) > 8 * (short ?? 0);
  }
  return false;
}

/** A text that begins and ends in a certain way, with so many characters in between. */
export function textWith(beginning: string, filler: string, end: string): (length: number) => string {
  return (length) => beginning + filler.repeat(Math.ceil(length / filler.length)) + end;
}
