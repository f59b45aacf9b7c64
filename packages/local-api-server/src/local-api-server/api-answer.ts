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
export function failure(status: number, message: string, retryAfterSeconds?: number): ApiAnswer {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: REASONS[status] ?? 'Unknown',
    ...(retryAfterSeconds !== undefined && { details: { retryAfterSeconds } }),
    code: status,
  };
  if (retryAfterSeconds === undefined) return { status, body };
  return { status, body, headers: { 'retry-after': String(retryAfterSeconds) } };
}

const AUTHENTICATION = 'authentication.k8s.io';
const CERTIFICATES = 'certificates.k8s.io';

const READ = ['get', 'list'];
const FOLLOW = [...READ, 'watch'];

/** The resources by the path of their document: the name, the kind, the verbs, and whether they are in namespaces. */
const RESOURCES: Readonly<
  Record<string, readonly (readonly [name: string, kind: string, verbs: string[], namespaced?: boolean])[]>
> = {
  '/api/v1': [
    ['serviceaccounts', 'ServiceAccount', READ, true],
    ['configmaps', 'ConfigMap', FOLLOW, true],
    ['secrets', 'Secret', FOLLOW, true],
    ['pods', 'Pod', [...FOLLOW, 'patch'], true],
  ],
  [`/apis/${AUTHENTICATION}/v1`]: [
    ['tokenreviews', 'TokenReview', ['create']],
    ['selfsubjectreviews', 'SelfSubjectReview', ['create']],
  ],
  [`/apis/${CERTIFICATES}/v1`]: [
    ['podcertificaterequests', 'PodCertificateRequest', ['create', ...READ], true],
    ['clustertrustbundles', 'ClusterTrustBundle', READ],
  ],
};

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
export function discovery(path: string, hasTokenRequest: boolean): unknown {
  const groups = [AUTHENTICATION, CERTIFICATES].map((name) => {
    const version = { groupVersion: `${name}/v1`, version: 'v1' };
    return { name, versions: [version], preferredVersion: version };
  });
  if (path === '/version') return { major: '1', minor: '34', gitVersion: 'v1.34.0', platform: 'linux/amd64' };
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  if (path === '/apis') return { kind: 'APIGroupList', apiVersion: 'v1', groups };
  const group = groups.find(({ name }) => path === `/apis/${name}`);
  if (group) return { kind: 'APIGroup', apiVersion: 'v1', ...group };
  const listed = RESOURCES[path]?.map(([name, kind, verbs, namespaced = false]): object => {
    return { name, singularName: '', namespaced, kind, verbs };
  });
  if (path === '/api/v1' && hasTokenRequest) listed?.push(TOKEN_REQUEST);
  const groupVersion = path.replace(/^\/apis?\//, '');
  return listed && { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: listed };
}
