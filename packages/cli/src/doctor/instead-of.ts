import { extname } from 'node:path';

/** How many names are listed if none is like the missing one. */
const MAX_NAMES = 10;

/** What there is instead of a missing name, as the end of a sentence: what is like it, or all if these are few. */
export function insteadOf(missing: string, names: readonly string[]): string {
  const similar = names.filter((name) => stem(name) === stem(missing)).slice(0, MAX_NAMES);
  const shown = similar.length > 0 || names.length > MAX_NAMES ? similar : [...names].sort();
  if (shown.length === 0) return '';
  return `; there ${shown.length === 1 ? 'is' : 'are'} ${shown.map((name) => `"${name}"`).join(', ')}`;
}

/** `app` of `App.yaml`. */
function stem(name: string): string {
  return name.slice(0, name.length - extname(name).length).toLowerCase();
}
