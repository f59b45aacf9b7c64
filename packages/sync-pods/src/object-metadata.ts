/** What a list and a watch need of the metadata of an object, which may be anything. */

/** `<namespace>/<name>`; undefined for bookmarks, and for what is not an object. */
export function nameOf(object: unknown): string | undefined {
  const { namespace, name } = metadataOf(object);
  const isNamed = typeof namespace === 'string' && typeof name === 'string' && name !== '';
  return isNamed ? `${namespace}/${name}` : undefined;
}

/** The `resourceVersion` of an object, a bookmark or a list. */
export function resourceVersionOf(object: unknown): string | undefined {
  const { resourceVersion } = metadataOf(object);
  return typeof resourceVersion === 'string' && resourceVersion !== '' ? resourceVersion : undefined;
}

/** Whether it is the bookmark that follows the last object of a streaming list. */
export function isEndOfList(object: unknown): boolean {
  const annotations = Object(metadataOf(object)['annotations']) as Readonly<Record<string, unknown>>;
  return annotations['k8s.io/initial-events-end'] === 'true';
}

function metadataOf(object: unknown): Readonly<Record<string, unknown>> {
  return Object((Object(object) as { metadata?: unknown }).metadata) as Readonly<Record<string, unknown>>;
}
