import { apiVersionOf, type Resource } from './resources.js';

/** Responses of the API server. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of `body`: begins to write, and returns what to call when the client is gone. */
  readonly stream?: (write: (text: string) => void, end: () => void) => () => void;
}

/** The `reason` of a `metav1.Status`, by status code. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** A failure as a `metav1.Status`. */
export function failure(
  status: number,
  message: string,
  { reason = REASONS[status] ?? 'Unknown', details, retryAfterSeconds }: FailureOptions = {},
): ApiAnswer {
  const more = retryAfterSeconds === undefined ? details : { ...details, retryAfterSeconds };
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(more && { details: more }),
    code: status,
  };
  if (retryAfterSeconds === undefined) return { status, body };
  return { status, body, headers: { 'retry-after': String(retryAfterSeconds) } };
}

interface FailureOptions {
  /** Default: that of the status. */
  readonly reason?: string;
  readonly details?: object;
  readonly retryAfterSeconds?: number;
}

const AUTHENTICATION = 'authentication.k8s.io';
const AUTHORIZATION = 'authorization.k8s.io';

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

/** Resources that are not stored: group, plural, kind. */
const REVIEWS = [
  [AUTHENTICATION, 'tokenreviews', 'TokenReview'],
  [AUTHENTICATION, 'selfsubjectreviews', 'SelfSubjectReview'],
  [AUTHORIZATION, 'selfsubjectaccessreviews', 'SelfSubjectAccessReview'],
];

/** A resource of `v1` whose objects are of another group. */
const TOKEN_REQUEST = {
  name: 'serviceaccounts/token',
  singularName: '',
  namespaced: true,
  group: AUTHENTICATION,
  version: 'v1',
  kind: 'TokenRequest',
  verbs: ['create'],
};

/** The discovery documents by path; without a TokenRequest API they do not list it. */
export function discovery(path: string, listed: readonly Resource[], hasTokenRequest: boolean): unknown {
  if (path === '/version') return { major: '1', minor: '34', gitVersion: 'v1.34.0', platform: 'linux/amd64' };
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  const resources = [
    ...listed.flatMap(({ group, version, plural: name, kind, isNamespaced: namespaced, hasStatus }) => {
      const described = { group, version, name, singularName: '', namespaced, kind, verbs: VERBS };
      const status = { ...described, name: `${name}/status`, verbs: ['get', 'patch', 'update'] };
      return hasStatus ? [described, status] : [described];
    }),
    ...REVIEWS.map(([group = '', name = '', kind = '']) => {
      return { group, version: 'v1', name, singularName: '', namespaced: false, kind, verbs: ['create'] };
    }),
  ];
  const groups = [...new Set(resources.map(({ group }) => group))].sort().map((name) => {
    const versions = new Set(resources.filter(({ group }) => group === name).map(({ version }) => version));
    const all = [...versions].map((version) => ({ groupVersion: `${name}/${version}`, version }));
    return { name, versions: all, preferredVersion: all[0] };
  });
  if (path === '/apis') {
    return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.filter(({ name }) => name !== '') };
  }
  const group = groups.find(({ name }) => name !== '' && path === `/apis/${name}`);
  if (group) return { kind: 'APIGroup', apiVersion: 'v1', ...group };
  const isHere = (each: (typeof resources)[number]): boolean =>
    path === `/${each.group === '' ? 'api' : 'apis'}/${apiVersionOf(each)}`;
  const here: object[] = resources.filter(isHere).map(({ group: _, version: __, ...rest }) => rest);
  if (here.length === 0) return undefined;
  if (path === '/api/v1' && hasTokenRequest) here.push(TOKEN_REQUEST);
  const groupVersion = path.replace(/^\/apis?\//, '');
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: here };
}
