/** Which of the changes in the text of the library is in force, and which of their places have been reached. */

/** So often the place of a change is not reached in a schedule or test that ends. */
const MOST_HITS = 200_000;

/** At first, for what is evaluated by imports, as the environment says. */
let active = Number(process.env['CHANGE'] ?? -1);
let hits = 0;
/** At first, by imports. */
let reached: Set<number> | undefined = new Set();

/** @param change -1: the code as it is. */
export function activate(change: number): void {
  active = change;
  hits = 0;
}

/** Whether the change that is in force goes round in a loop. */
export const isEndless = (): boolean => hits > MOST_HITS;

/** Before each change. */
function isActive(change: number): boolean {
  if (change !== active) return false;
  hits += 1;
  if (isEndless()) throw new Error('the change goes round in a loop');
  return true;
}

/** Where each change is not in force. */
function reach(...changes: number[]): void {
  if (reached) for (const change of changes) reached.add(change);
}

/** Returns what has been reached since the last call. */
export function takeReached(): number[] {
  const before = reached ?? [];
  reached = new Set();
  return [...before];
}

export function ignoreReached(): void {
  reached = undefined;
}

// Names that the library does not have.
export { isActive as $isActive, reach as $reach };
