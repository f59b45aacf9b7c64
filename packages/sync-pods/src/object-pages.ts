import { ApiFailure, apiFailureOf } from 'resilient-watcher/internal';

import { nameOf, resourceVersionOf } from './object-metadata.js';

/** A part of a list. */
interface Page {
  readonly items: readonly unknown[];
  /** The version of the whole list. */
  readonly version: string;
  /** Where the next page begins; undefined: it is the last one. */
  readonly next: string | undefined;
}

/** Pods have some 10 KiB. */
const OBJECTS_PER_PAGE = 250;

/** Pages without a new object, one after another: what is filtered out may leave some empty. */
const MOST_EMPTY_PAGES = 1_000;

/** More than the largest clusters have. */
export const MOST_OBJECTS = 1_000_000;

/** A page did not come in time. */
export class LatePage extends Error {}

/**
 * The pages of a list. One that is longer than is read of it is requested again with a quarter of the objects, and the
 * next one has twice as many: only where the objects are large do pages become small. After one that is late, all
 * others are small, too.
 * @param request makes one request with these parameters.
 * @param onLate hears of a page that is requested again.
 * @throws {ApiFailure} for what is not a list, and for a list without an end.
 */
export async function* pagesOf(
  request: (parameters: Readonly<Record<string, string>>) => Promise<unknown>,
  onLate: (error: LatePage) => void,
): AsyncGenerator<Page, void> {
  const names = new Set<string>();
  const tokens = new Set<string>();
  let emptyPages = 0;
  let largest = OBJECTS_PER_PAGE;
  let size = largest;
  let from: string | undefined;
  for (;;) {
    let page: Page;
    try {
      page = pageOf(await request({ limit: String(size), ...(from !== undefined && { continue: from }) }));
    } catch (error) {
      const isLate = error instanceof LatePage;
      if (size === 1 || !(isLate || isTooLong(error))) throw error;
      size = Math.ceil(size / 4);
      if (isLate) {
        largest = size;
        onLate(error);
      }
      continue;
    }
    const known = names.size;
    for (const item of page.items) names.add(nameOf(item) ?? '');
    emptyPages = names.size === known ? emptyPages + 1 : 0;
    if (page.next !== undefined) {
      const isRepeated = emptyPages > 0 && tokens.has(page.next);
      if (isRepeated || emptyPages > MOST_EMPTY_PAGES || names.size > MOST_OBJECTS)
        throw new ApiFailure(200, `the list does not end after ${names.size} objects`);
      tokens.add(page.next);
    }
    yield page;
    if (page.next === undefined) return;
    from = page.next;
    size = Math.min(largest, size * 2);
  }
}

/** The page of an error may be of any length, whatever was asked for. */
function isTooLong(error: unknown): boolean {
  const failure = apiFailureOf(error);
  return failure?.code === 'ERR_API_TOO_LONG' && failure.status < 300;
}

function pageOf(answer: unknown): Page {
  const { items: found, metadata } = Object(answer) as { items?: unknown; metadata?: unknown };
  // An empty list of metadata says null.
  const items = found === null ? [] : found;
  const { continue: next } = Object(metadata) as { continue?: unknown };
  const version = resourceVersionOf(answer);
  if (!Array.isArray(items) || version === undefined) throw new ApiFailure(200, 'the answer is not a list');
  return { items, version, next: typeof next === 'string' && next !== '' ? next : undefined };
}
