/**
 * Every resource by its path: created, read, updated, patched, deleted, listed and watched, in full or as metadata
 * only.
 */
import { randomUUID } from 'node:crypto';

import type { Clock } from 'resilient-watcher';
import { kubernetesTime } from 'resilient-watcher/internal';

import { failure, type ApiAnswer } from './api-answer.js';
import {
  conflictOf,
  detailsOf,
  expired,
  invalid,
  listOf,
  notFound,
  notSupported,
  qualified,
  shown,
  tooLarge,
} from './object-answers.js';
import { keyOf, type ApiObject, type ObjectStore, type StoredObject } from './object-store.js';
import { watchObjects } from './object-watch.js';
import { isSameJson, PATCHES, PatchError } from './patches.js';
import { apiVersionOf, resourceOf, type Resource } from './resources.js';
import { selectorOf, type Selects } from './selectors.js';

/** A request for objects. */
export interface ObjectCall {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string;
  readonly contentType: string;
  readonly body: unknown;
}

/** What a path names. */
interface Target {
  readonly resource: Resource;
  readonly namespace: string | undefined;
  /** Undefined: all of them. */
  readonly name: string | undefined;
  readonly isStatus: boolean;
}

const PATH = /^\/(?:api|apis\/([^/]+))\/(v\d\w*)\/(.+)$/;

/** The names of most resources: those of subdomains. */
const NAME = /^(?=.{1,253}$)[a-z\d](?:[-a-z\d]*[a-z\d])?(?:\.[a-z\d](?:[-a-z\d]*[a-z\d])?)*$/;

/** Names that may also have a colon. */
const COLON_GROUPS = ['rbac.authorization.k8s.io', 'certificates.k8s.io'];

export class ObjectApi {
  /** Whether a watch may begin with what exists (`sendInitialEvents`). */
  hasStreamingLists = true;
  readonly #clock: Clock;
  readonly #store: ObjectStore;

  constructor(clock: Clock, store: ObjectStore) {
    this.#clock = clock;
    this.#store = store;
  }

  /** Undefined for paths that are those of no objects. */
  answer(call: ObjectCall): ApiAnswer | undefined {
    const target = this.#targetOf(call.path);
    if (!target) return undefined;
    const { method, query } = call;
    try {
      if (target.name === undefined) {
        if (method === 'POST') return this.#create(target, call);
        const selects = selectorOf(query, target.namespace);
        if (method === 'DELETE') return this.#deleteAll(target, selects, call);
        if (method !== 'GET') return notSupported(method);
        const isWatch = ['1', 'true', ''].includes(query.get('watch') ?? 'false');
        if (!isWatch) return this.#list(target, selects, call);
        const { hasStreamingLists } = this;
        const ports = { store: this.#store, clock: this.#clock, hasStreamingLists };
        return watchObjects(target.resource, selects, call, ports);
      }
      const object = this.#store.get(target.resource.name, target.namespace, target.name);
      if (!object) return notFound(target.resource, target.name);
      if (method === 'GET') return { status: 200, body: shown(object, call.accept) };
      if (method === 'PUT') return this.#update(target, object, call.body, call);
      if (method === 'PATCH') return this.#patch(target, object, call);
      if (method === 'DELETE' && !target.isStatus) return this.#delete(target.resource, object, call);
      return notSupported(method);
    } catch (error) {
      if (error instanceof SyntaxError) return failure(400, error.message);
      if (error instanceof PatchError) return failure(422, `the patch cannot be applied: ${error.message}`);
      throw error;
    }
  }

  #targetOf(path: string): Target | undefined {
    const [, group = '', version = '', rest = ''] = PATH.exec(path) ?? [];
    // Reviews are answered elsewhere, and are not stored.
    if (rest === '' || /^auth(?:entication|orization)\.k8s\.io$/.test(group)) return undefined;
    let names: (string | undefined)[];
    try {
      names = rest.split('/').map(decodeURIComponent);
    } catch {
      return undefined;
    }
    let namespace: string | undefined;
    // `namespaces/shop/status` is a part of the namespace.
    const isOfNamespace = ['status', 'finalize', undefined].includes(names[2]);
    if (names[0] === 'namespaces' && !isOfNamespace) [, namespace, ...names] = names;
    const [plural = '', name, part, more] = names;
    const resource = resourceOf(this.#store, group, version, plural, namespace !== undefined);
    const isStatus = part === 'status' && resource.hasStatus;
    if (more !== undefined || (part !== undefined && !isStatus) || name === '') return undefined;
    // Lists and watches may be of all namespaces.
    if (name !== undefined && resource.isNamespaced !== (namespace !== undefined)) return undefined;
    return { resource, namespace, name, isStatus };
  }

  #create({ resource, namespace }: Target, { body, accept, query }: ObjectCall): ApiAnswer {
    const { metadata, ...given } = Object(body) as Partial<ApiObject>;
    const wrong = wrongKind(resource, given);
    if (wrong !== undefined || !metadata)
      return failure(400, wrong ?? 'the body is not an object with metadata');
    const { generateName, name = generateName && `${generateName as string}${randomUUID().slice(0, 5)}` } =
      metadata as Partial<ApiObject['metadata']>;
    if (typeof name !== 'string' || name === '') {
      return invalid(resource, '', 'metadata.name: Required value: name or generateName is required');
    }
    if (!NAME.test(COLON_GROUPS.includes(resource.group) ? name.replaceAll(':', '') : name)) {
      return invalid(
        resource,
        name,
        `metadata.name: Invalid value: ${JSON.stringify(name)}: must be a DNS subdomain`,
      );
    }
    if (resource.isNamespaced !== (namespace !== undefined)) {
      return failure(
        405,
        `objects of this resource are created ${resource.isNamespaced ? 'in' : 'outside'} a namespace`,
      );
    }
    if ((metadata.namespace ?? namespace) !== namespace) return failure(400, WRONG_NAMESPACE);
    if (metadata['resourceVersion'] !== undefined && metadata['resourceVersion'] !== '') {
      return failure(400, 'resourceVersion should not be set on objects to be created');
    }
    if (this.#store.get(resource.name, namespace, name)) {
      const message = `${qualified(resource)} "${name}" already exists`;
      return failure(409, message, { reason: 'AlreadyExists', details: detailsOf(resource, name) });
    }
    const object: ApiObject = {
      ...identityOf(resource, given),
      ...(resource.hasStatus ? without(given, 'status') : given),
      metadata: {
        ...without(metadata, 'uid', 'deletionTimestamp', 'resourceVersion'),
        name,
        ...(namespace !== undefined && { namespace }),
        ...(resource.hasStatus && { generation: 1 }),
        creationTimestamp: kubernetesTime(this.#clock.now()),
      },
    };
    const created = isDry(query) ? object : this.#store.put(resource.name, object);
    return { status: 201, body: shown(created, accept) };
  }

  #patch(target: Target, object: StoredObject, call: ObjectCall): ApiAnswer {
    const { resource } = target;
    const [type = ''] = call.contentType.split(';');
    const patch = Object.hasOwn(PATCHES, type) ? PATCHES[type] : undefined;
    if (!patch || (resource.isCustom && type.includes('strategic'))) {
      const types = Object.keys(PATCHES).filter((each) => !resource.isCustom || !each.includes('strategic'));
      return failure(
        415,
        `patches of the type "${type}" are not supported here; supported are ${types.join(', ')}`,
      );
    }
    const after = patch(object, call.body) as StoredObject;
    const { metadata } = Object(after) as Partial<StoredObject>;
    const { uid } = Object(metadata) as Partial<StoredObject['metadata']>;
    if (uid !== object.metadata.uid) {
      const why = `metadata.uid: Invalid value: "${uid}": field is immutable`;
      return invalid(resource, object.metadata.name, why);
    }
    return this.#update(target, object, after, call);
  }

  /** Replaces an object, or its status, if nobody else has done so meanwhile. */
  #update(
    { resource, isStatus }: Target,
    before: StoredObject,
    body: unknown,
    { accept, query }: ObjectCall,
  ): ApiAnswer {
    const { metadata, ...given } = Object(body) as Partial<StoredObject>;
    const wrong = wrongKind(resource, given);
    if (wrong !== undefined || !metadata)
      return failure(400, wrong ?? 'the body is not an object with metadata');
    const { name, namespace } = before.metadata;
    if (metadata.name !== name) {
      return failure(
        400,
        `the name of the object (${metadata.name}) does not match the name on the URL (${name})`,
      );
    }
    if ((metadata.namespace ?? namespace) !== namespace) return failure(400, WRONG_NAMESPACE);
    const conflict = conflictOf(resource, before, metadata);
    if (conflict) return conflict;
    if (!metadata.resourceVersion && (resource.isCustom || resource.plural === 'leases')) {
      return invalid(
        resource,
        name,
        'metadata.resourceVersion: Invalid value: 0: must be specified for an update',
      );
    }
    const own = without(before, 'metadata');
    const fields: Readonly<Record<string, unknown>> = isStatus
      ? { ...own, status: given['status'] }
      : { ...identityOf(resource, given), ...given, ...(resource.hasStatus && { status: before['status'] }) };
    const isEdited = !isSameJson(without(fields, 'status'), without(own, 'status'));
    const { generation, uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds } =
      before.metadata;
    const object = {
      ...fields,
      metadata: {
        ...(isStatus ? before.metadata : metadata),
        name,
        namespace,
        uid,
        creationTimestamp,
        deletionTimestamp,
        deletionGracePeriodSeconds,
        generation: isEdited && typeof generation === 'number' ? generation + 1 : generation,
        resourceVersion: before.metadata.resourceVersion,
      },
    };
    const after = JSON.parse(JSON.stringify(object)) as StoredObject;
    if (isDry(query) || isSameJson(after, before)) return { status: 200, body: shown(after, accept) };
    const stored = this.#store.put(resource.name, after);
    // The last finalizer is gone.
    if (deletionTimestamp !== undefined && !stored.metadata.finalizers?.length) {
      this.#store.delete(resource.name, namespace, name);
    }
    return { status: 200, body: shown(stored, accept) };
  }

  #delete(resource: Resource, object: StoredObject, { body, query, accept }: ObjectCall): ApiAnswer {
    const { preconditions } = Object(body) as { readonly preconditions?: object };
    const conflict = conflictOf(resource, object, Object(preconditions) as object);
    if (conflict) return conflict;
    const { name, namespace, uid, finalizers } = object.metadata;
    if (finalizers?.length) {
      const deletionTimestamp = object.metadata['deletionTimestamp'] ?? kubernetesTime(this.#clock.now());
      const metadata = { ...object.metadata, deletionTimestamp, deletionGracePeriodSeconds: 0 };
      const marked = { ...object, metadata };
      const isNews = object.metadata['deletionTimestamp'] === undefined && !isDry(query);
      return { status: 200, body: shown(isNews ? this.#store.put(resource.name, marked) : marked, accept) };
    }
    if (!isDry(query)) this.#store.delete(resource.name, namespace, name);
    const details = { ...detailsOf(resource, name), uid };
    return {
      status: 200,
      body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details },
    };
  }

  #deleteAll({ resource }: Target, selects: Selects, call: ObjectCall): ApiAnswer {
    const objects = this.#store.list(resource.name).filter(selects);
    for (const object of objects) this.#delete(resource, object, call);
    return {
      status: 200,
      body: listOf(resource, objects, { resourceVersion: `${this.#store.version}` }, call.accept),
    };
  }

  #list({ resource }: Target, selects: Selects, { query, accept }: ObjectCall): ApiAnswer {
    const wanted = Number(query.get('resourceVersion') ?? 0);
    if (wanted > this.#store.version) return tooLarge(wanted, this.#store.version);
    const isExact = query.get('resourceVersionMatch') === 'Exact';
    const [version, last] = continued(query.get('continue')) ?? [isExact ? wanted : this.#store.version, ''];
    if (version < this.#store.forgotten && version < this.#store.version) return expired(version);
    const all = this.#store.list(resource.name, version).filter(selects);
    const rest = last === '' ? all : all.filter(({ metadata }) => keyOf(metadata) > last);
    const items = rest.slice(0, Number(query.get('limit') ?? 0) || rest.length);
    const end = items.at(-1);
    const metadata = {
      resourceVersion: String(version),
      ...(end &&
        items.length < rest.length && {
          continue: Buffer.from(JSON.stringify([version, keyOf(end.metadata)])).toString('base64url'),
          remainingItemCount: rest.length - items.length,
        }),
    };
    return { status: 200, body: listOf(resource, items, metadata, accept) };
  }
}

const WRONG_NAMESPACE =
  'the namespace of the provided object does not match the namespace sent on the request';

/** Why a body is not of this resource; of a custom resource without a definition, its objects say the kind. */
function wrongKind(
  resource: Resource,
  { apiVersion, kind }: Readonly<Record<string, unknown>>,
): string | undefined {
  const wanted = apiVersionOf(resource);
  if ((apiVersion ?? wanted) !== wanted)
    return `the API version in the data (${String(apiVersion)}) does not match the expected one (${wanted})`;
  if (resource.isCustom || (kind ?? resource.kind) === resource.kind) return undefined;
  return `the kind in the data (${String(kind)}) does not match the expected one (${resource.kind})`;
}

function identityOf(resource: Resource, { kind }: Readonly<Record<string, unknown>>): object {
  return { apiVersion: apiVersionOf(resource), kind: kind ?? resource.kind };
}

function isDry(query: URLSearchParams): boolean {
  return query.getAll('dryRun').includes('All');
}

function without<T extends object>(object: T, ...keys: readonly string[]): T {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key))) as T;
}

/** The version of a list, and the key of the last object that was sent. */
function continued(token: string | null): readonly [version: number, last: string] | undefined {
  if (token === null || token === '') return undefined;
  try {
    const [version, last] = JSON.parse(Buffer.from(token, 'base64url').toString()) as unknown[];
    if (typeof version === 'number' && typeof last === 'string') return [version, last];
  } catch {
    // The next line says it.
  }
  throw new SyntaxError('continue key is not valid');
}
