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
const authenticationVersion = { groupVersion: `${AUTHENTICATION}/v1`, version: 'v1' };
const authenticationGroup = {
  name: AUTHENTICATION,
  versions: [authenticationVersion],
  preferredVersion: authenticationVersion,
};

const CERTIFICATES = 'certificates.k8s.io';
const certificatesVersion = { groupVersion: `${CERTIFICATES}/v1`, version: 'v1' };
const certificatesGroup = {
  name: CERTIFICATES,
  versions: [certificatesVersion],
  preferredVersion: certificatesVersion,
};

/** The discovery documents by path; without a TokenRequest API they do not list it. */
export function discovery(path: string, hasTokenRequest: boolean): unknown {
  switch (path) {
    case '/version':
      return { major: '1', minor: '34', gitVersion: 'v1.34.0', platform: 'linux/amd64' };
    case '/api':
      return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
    case '/apis':
      return { kind: 'APIGroupList', apiVersion: 'v1', groups: [authenticationGroup, certificatesGroup] };
    case `/apis/${AUTHENTICATION}`:
      return { kind: 'APIGroup', apiVersion: 'v1', ...authenticationGroup };
    case '/api/v1':
      return resourceList('v1', [
        { name: 'serviceaccounts', namespaced: true, kind: 'ServiceAccount', verbs: ['get', 'list'] },
        { name: 'configmaps', namespaced: true, kind: 'ConfigMap', verbs: ['get', 'list', 'watch'] },
        { name: 'secrets', namespaced: true, kind: 'Secret', verbs: ['get', 'list', 'watch'] },
        { name: 'pods', namespaced: true, kind: 'Pod', verbs: ['get', 'list', 'patch', 'watch'] },
        ...(hasTokenRequest ? [tokenRequestResource] : []),
      ]);
    case `/apis/${AUTHENTICATION}/v1`:
      return resourceList(`${AUTHENTICATION}/v1`, [
        { name: 'tokenreviews', namespaced: false, kind: 'TokenReview', verbs: ['create'] },
        { name: 'selfsubjectreviews', namespaced: false, kind: 'SelfSubjectReview', verbs: ['create'] },
      ]);
    case `/apis/${CERTIFICATES}`:
      return { kind: 'APIGroup', apiVersion: 'v1', ...certificatesGroup };
    case `/apis/${CERTIFICATES}/v1`:
      return resourceList(`${CERTIFICATES}/v1`, [
        {
          name: 'podcertificaterequests',
          namespaced: true,
          kind: 'PodCertificateRequest',
          verbs: ['create', 'get', 'list'],
        },
        {
          name: 'clustertrustbundles',
          namespaced: false,
          kind: 'ClusterTrustBundle',
          verbs: ['get', 'list'],
        },
      ]);
    default:
      return undefined;
  }
}

const tokenRequestResource = {
  name: 'serviceaccounts/token',
  namespaced: true,
  group: AUTHENTICATION,
  version: 'v1',
  kind: 'TokenRequest',
  verbs: ['create'],
};

function resourceList(
  groupVersion: string,
  resources: readonly Readonly<Record<string, unknown>>[],
): unknown {
  const named = resources.map((resource) => ({ singularName: '', ...resource }));
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: named };
}
