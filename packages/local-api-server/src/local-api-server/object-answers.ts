/** What is answered about objects, in the words of the API server. */
import { failure, type ApiAnswer } from './api-answer.js';
import type { ApiObject, StoredObject } from './object-store.js';
import { apiVersionOf, type Resource } from './resources.js';

export function notSupported(method: string): ApiAnswer {
  return failure(405, `${method} is not supported`);
}

export function notFound(resource: Resource, name: string): ApiAnswer {
  return failure(404, `${qualified(resource)} "${name}" not found`, { details: detailsOf(resource, name) });
}

export function invalid({ group, kind }: Resource, name: string, why: string): ApiAnswer {
  return failure(422, `${kind}${group && `.${group}`} "${name}" is invalid: ${why}`);
}

export function expired(version: number): ApiAnswer {
  return failure(410, `too old resource version: ${version}`);
}

export function tooLarge(version: number, current: number): ApiAnswer {
  return failure(504, `Too large resource version: ${version}, current: ${current}`);
}

export function qualified({ plural, group }: Resource): string {
  return group === '' ? plural : `${plural}.${group}`;
}

export function detailsOf({ plural, group }: Resource, name: string): object {
  return { name, ...(group !== '' && { group }), kind: plural };
}

export function listOf(
  resource: Resource,
  objects: readonly StoredObject[],
  metadata: object,
  accept: string,
): object {
  const isPartial = accept.includes('as=PartialObjectMetadataList');
  return {
    apiVersion: isPartial ? 'meta.k8s.io/v1' : apiVersionOf(resource),
    kind: isPartial ? 'PartialObjectMetadataList' : `${resource.kind}List`,
    metadata,
    // As a real one.
    items: isPartial && objects.length === 0 ? null : objects.map((object) => shown(object, accept)),
  };
}

export function shown(object: object, accept: string): object {
  if (!accept.includes('as=PartialObjectMetadata')) return object;
  const { metadata } = object as ApiObject;
  return { apiVersion: 'meta.k8s.io/v1', kind: 'PartialObjectMetadata', metadata };
}

/** If somebody else has changed the object, or it is another one. */
export function conflictOf(
  resource: Resource,
  { metadata: { name, resourceVersion, uid } }: StoredObject,
  given: { readonly resourceVersion?: string; readonly uid?: string },
): ApiAnswer | undefined {
  let why: string | undefined;
  if (given.uid !== undefined && given.uid !== uid) {
    why = `Precondition failed: UID in precondition: ${given.uid}, UID in object meta: ${uid}`;
  } else if (given.resourceVersion && given.resourceVersion !== resourceVersion) {
    why = 'the object has been modified; please apply your changes to the latest version and try again';
  }
  if (why === undefined) return undefined;
  const message = `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`;
  return failure(409, message, { details: detailsOf(resource, name) });
}
