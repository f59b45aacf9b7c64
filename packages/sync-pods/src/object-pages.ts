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

/** More than the largest clusters have. */
export const MOST_OBJECTS = 1_000_000;

/**
 * The pages of a list. One that is longer than is read of it is requested again with a quarter of the objects, and the
 * next one has twice as many: only where the objects are large do pages become small.
 * @param request makes one request with these parameters.
 * @throws {ApiFailure} for what is not a list, and for a list without an end.
 */
export async function* pagesOf(
  request: (parameters: Readonly<Record<string, string>>) => Promise<unknown>,
): AsyncGenerator<Page, void> {
  const names = new Set<string>();
  let size = OBJECTS_PER_PAGE;
  let from: string | undefined;
  for (;;) {
    let page: Page;
    try {
      page = pageOf(await request({ limit: String(size), ...(from !== undefined && { continue: from }) }));
    } catch (error) {
      if (!isTooLong(error) || size === 1) throw error;
      size = Math.ceil(size / 4);
      continue;
    }
    const known = names.size;
    for (const item of page.items) names.add(nameOf(item) ?? '');
    if (page.next !== undefined && (names.size === known || names.size > MOST_OBJECTS)) {
      throw new ApiFailure(200, `the list does not end after ${known} objects`);
    }
    yield page;
    if (page.next === undefined) return;
    from = page.next;
    size = Math.min(OBJECTS_PER_PAGE, size * 2);
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
