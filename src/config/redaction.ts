/** A message without the values it may quote. */

const WORD = /[\p{L}\p{N}]+/gu;

/** Shorter words are hidden only when they are a whole value: every long secret contains most pairs of letters. */
const SHORTEST_PART = 3;

const LONGEST_MESSAGE = 300;

/**
 * `message` with every word that is a value, or part of a value, of `values` replaced by `…`. Libraries quote
 * what they refuse (`Expected number but received "s3cret"`), whole or in part, and these words are all that a
 * quotation can consist of.
 */
export function withoutValues(message: string, values: unknown): string {
  const leaves = [...leavesOf(values)]
    .flatMap((leaf) => [leaf, JSON.stringify(leaf)])
    .map((leaf) => leaf.toLowerCase());
  const isTold = (word: string): boolean =>
    leaves.some((leaf) =>
      word.length < SHORTEST_PART || leaf.length < SHORTEST_PART
        ? leaf === word || leaf.split(/[^\p{L}\p{N}]+/u).includes(word)
        : leaf.includes(word) || word.includes(leaf),
    );
  const short = message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE)}…` : message;
  return short.replace(WORD, (word) => (isTold(word.toLowerCase()) ? '…' : word));
}

function* leavesOf(value: unknown): Generator<string> {
  if (typeof value === 'object' && value !== null)
    for (const member of Object.values(value)) yield* leavesOf(member);
  else if (
    typeof value === 'string' ? value !== '' : typeof value === 'number' || typeof value === 'bigint'
  ) {
    yield String(value);
  }
}
