/** Pods that the ValidatingAdmissionPolicy of `deploy/` has an opinion of, and what it finds in them. */
import { readFileSync } from 'node:fs';

import { parseAllDocuments } from 'yaml';

import { manifestPath } from './manifest-files.js';

interface Policy {
  readonly spec: {
    readonly matchConditions: readonly { readonly expression: string }[];
    readonly variables: readonly { readonly name: string; readonly expression: string }[];
    readonly validations: readonly { readonly message: string; readonly expression: string }[];
  };
}

interface Binding {
  readonly metadata: { readonly name: string };
  readonly spec: object;
}

const file = manifestPath('admission-policy.yaml');

/** The documents of the file. */
export const [policy, binding] = parseAllDocuments(readFileSync(file, 'utf8')).map(
  (one) => one.toJS() as unknown,
) as [Policy, Binding];

/** What the policy can find. */
export const POLICY_IDS = policy.spec.validations.map(({ message }) => message.replace(/:.*/, ''));

const mounted = (volume: string, mount = ''): string =>
  `{ volumes: [{ name: v, ${volume} }], containers: [{ name: c, image: a, volumeMounts: [{ name: v, mountPath: /v${mount} }] }] }`;
/** A container with a variable, and a mount of this volume. */
const named = (variable: string, path: string, volume = 'projected: { sources: [] }'): string =>
  mounted(volume).replace('image: a,', `image: a, env: [{ name: ${variable}, value: ${path} }],`);
const env = (from: string, more = ''): string =>
  `{ containers: [{ name: c, image: a, env: [{ name: A, ${from} }] }]${more} }`;

/** The specification of a pod as YAML, and the findings of it, in the order of the policy. */
export const POLICY_PODS: readonly (readonly [spec: string, ids: readonly string[]])[] = [
  ['{ containers: [{ name: c, image: a }] }', []],
  [mounted('configMap: { name: m }'), []],
  [mounted('configMap: { name: m }', ', subPath: k'), ['SUBPATH']],
  [mounted('secret: { secretName: s }', ', subPathExpr: $(K)'), ['SUBPATH']],
  [mounted('csi: { driver: d }', ', subPath: k'), ['SUBPATH']],
  [mounted('emptyDir: {}', ', subPath: k'), []],
  [
    '{ volumes: [{ name: v, downwardAPI: {} }], containers: [{ name: c, image: a }], initContainers: [{ name: i, image: a, volumeMounts: [{ name: v, mountPath: /v, subPath: k }] }] }',
    ['SUBPATH'],
  ],
  [env('value: a'), []],
  [env('valueFrom: { fieldRef: { fieldPath: spec.nodeName } }'), []],
  [env('valueFrom: { secretKeyRef: { name: s, key: k } }'), ['ENV_FROM']],
  ['{ containers: [{ name: c, image: a, envFrom: [{ configMapRef: { name: m } }] }] }', ['ENV_FROM']],
  [
    env(
      'valueFrom: { fileKeyRef: { volumeName: v, path: p, key: A } }',
      ', volumes: [{ name: v, emptyDir: {} }]',
    ),
    ['ENV_FILE'],
  ],
  [mounted('image: { reference: r }'), ['IMAGE_VOLUME']],
  [
    mounted(
      'projected: { sources: [{ podCertificate: { signerName: a.b/c, keyType: ED25519, credentialBundlePath: b } }] }',
    ),
    [],
  ],
  [
    mounted(
      'projected: { sources: [{ podCertificate: { signerName: a.b/c, keyType: ED25519, keyPath: k, certificateChainPath: c } }] }',
    ),
    ['SPLIT_CERTIFICATE'],
  ],
  [
    mounted('projected: { sources: [{ podCertificate: { signerName: a.b/c, credentialBundlePath: b } }] }'),
    ['KEY_TYPE'],
  ],
  [
    mounted('projected: { sources: [{ clusterTrustBundle: { signerName: a.b/c, path: b } }] }'),
    ['TRUST_SELECTOR'],
  ],
  [
    mounted(
      'projected: { sources: [{ clusterTrustBundle: { signerName: a.b/c, labelSelector: {}, path: b } }, { clusterTrustBundle: { name: n, path: c } }] }',
    ),
    [],
  ],
  [named('NODE_EXTRA_CA_CERTS', '/v/ca.pem'), ['CA_READ_ONCE']],
  [named('SSL_CERT_FILE', '/v/ca.pem', 'configMap: { name: m }'), ['CA_READ_ONCE']],
  [named('SSL_CERT_FILE', '/values/ca.pem'), []],
  [named('NODE_EXTRA_CA_CERTS', '/v/ca.pem', 'emptyDir: {}'), []],
  [named('RESILIENT_WATCHER_CA', '/v/ca.pem'), []],
  [named('RESILIENT_WATCHER_CA', '/trust/ca.pem'), ['CA_PATH']],
  [mounted('projected: { sources: [{ serviceAccountToken: { path: t } }] }'), ['LONG_PROJECTION']],
  // As the API server stores the default.
  [
    mounted('projected: { sources: [{ serviceAccountToken: { path: t, expirationSeconds: 3600 } }] }'),
    ['LONG_PROJECTION'],
  ],
  [mounted('projected: { sources: [{ serviceAccountToken: { path: t, expirationSeconds: 600 } }] }'), []],
];

/** A pod, and workloads with the same pod. */
export function workloadsOf(spec: object): readonly { readonly kind: string; readonly spec: object }[] {
  const template = { template: { spec } };
  return [
    { kind: 'Pod', spec },
    { kind: 'Deployment', spec: template },
    { kind: 'CronJob', spec: { jobTemplate: { spec: template } } },
  ];
}
