/** What `doctor --manifest` finds in manifests. */
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

import { findingsInManifests } from '../../src/manifests.js';

/** The spec of a pod with one container, as YAML of one level. */
const pod = (spec: string): string => `
apiVersion: v1
kind: Pod
metadata: { name: app }
spec:
${spec.trim().replace(/^/gm, '  ')}
`;

const mounted = (volume: string, mount = ''): string => `
volumes: [{ name: v, ${volume} }]
containers: [{ name: c, volumeMounts: [{ name: v, mountPath: /etc/v${mount} }] }]`;

const certificate = (life: string, env: string): string =>
  pod(`
volumes: [{ name: v, projected: { sources: [{ podCertificate: { keyType: ED25519, credentialBundlePath: bundle.pem${life} } }] } }]
containers: [{ name: c, env: [${env}], volumeMounts: [{ name: v, mountPath: /etc/v }] }]`);

/** What kubelet itself makes, and Secrets and ConfigMaps are not. */
const OWN_SOURCES =
  '{ serviceAccountToken: { path: t, expirationSeconds: 600 } }, { clusterTrustBundle: { path: b } }, { podCertificate: { keyType: ED25519, credentialBundlePath: p } }';

const cases: readonly (readonly [name: string, manifest: string, ids: readonly string[]])[] = [
  ['a whole volume is fine', pod(mounted('configMap: { name: m }')), []],
  ['subPath of a ConfigMap', pod(mounted('configMap: { name: m }', ', subPath: k')), ['SUBPATH']],
  ['subPathExpr of a Secret', pod(mounted('secret: { secretName: s }', ', subPathExpr: $(K)')), ['SUBPATH']],
  ['subPath of a projected volume', pod(mounted('projected: { sources: [] }', ', subPath: k')), ['SUBPATH']],
  [
    'subPath of a claim changes nothing',
    pod(mounted('persistentVolumeClaim: { claimName: p }', ', subPath: k')),
    [],
  ],
  [
    'subPath in an init container',
    pod(`volumes: [{ name: v, configMap: { name: m } }]
initContainers: [{ name: i, volumeMounts: [{ name: v, mountPath: /x, subPath: k }] }]
containers: []`),
    ['SUBPATH'],
  ],
  [
    'a trust bundle with a name and a signer',
    pod(mounted('projected: { sources: [{ clusterTrustBundle: { signerName: a.b/c, name: n, path: b } }] }')),
    ['TRUST_SELECTOR'],
  ],
  ['an immutable ConfigMap', 'kind: ConfigMap\nmetadata: { name: m }\nimmutable: true', ['IMMUTABLE']],
  ['an immutable Secret', 'kind: Secret\nmetadata: { name: m }\nimmutable: true', ['IMMUTABLE']],
  ['immutable: false', 'kind: Secret\nmetadata: { name: m }\nimmutable: false', []],
  ['immutable elsewhere', 'kind: Other\nmetadata: { name: m }\nimmutable: true', []],
  [
    'env from a Secret key',
    pod('containers: [{ name: c, env: [{ name: A, valueFrom: { secretKeyRef: { name: s, key: k } } }] }]'),
    ['ENV_FROM'],
  ],
  [
    'envFrom a ConfigMap',
    pod('containers: [{ name: c, envFrom: [{ configMapRef: { name: m } }] }]'),
    ['ENV_FROM'],
  ],
  [
    'env from a field',
    pod(
      'containers: [{ name: c, env: [{ name: A, valueFrom: { fieldRef: { fieldPath: spec.nodeName } } }] }]',
    ),
    [],
  ],
  [
    'the default expirationSeconds',
    pod(mounted('projected: { sources: [{ serviceAccountToken: { path: token } }] }')),
    ['LONG_PROJECTION'],
  ],
  [
    'a chosen expirationSeconds',
    pod(
      mounted('projected: { sources: [{ serviceAccountToken: { path: token, expirationSeconds: 600 } }] }'),
    ),
    [],
  ],
  [
    'a longer expirationSeconds, which was chosen, too',
    pod(
      mounted('projected: { sources: [{ serviceAccountToken: { path: token, expirationSeconds: 7200 } }] }'),
    ),
    [],
  ],
  [
    'runAsNonRoot without fsGroup',
    pod(`securityContext: { runAsNonRoot: true }${mounted('secret: { secretName: s }')}`),
    ['NO_FS_GROUP'],
  ],
  [
    'runAsUser of a container without fsGroup',
    pod(`volumes: [{ name: v, secret: { secretName: s } }]
containers: [{ name: c, securityContext: { runAsUser: 1000 }, volumeMounts: [] }]`),
    ['NO_FS_GROUP'],
  ],
  [
    'fsGroup is set',
    pod(`securityContext: { runAsNonRoot: true, fsGroup: 65532 }${mounted('secret: { secretName: s }')}`),
    [],
  ],
  [
    'defaultUser is the user of the container',
    pod(`securityContext: { runAsUser: 1000 }${mounted('secret: { secretName: s, defaultUser: 1000 }')}`),
    [],
  ],
  [
    'defaultUser is another user',
    pod(`securityContext: { runAsUser: 1000 }${mounted('secret: { secretName: s, defaultUser: 999 }')}`),
    ['NO_FS_GROUP'],
  ],
  [
    'each file has a user, one of them another',
    pod(
      `securityContext: { runAsUser: 7 }${mounted('configMap: { name: m, items: [{ key: a, path: a, user: 7 }, { key: b, path: b, user: 8 }] }')}`,
    ),
    ['NO_FS_GROUP'],
  ],
  [
    'a token and a trust bundle have the user',
    pod(
      `securityContext: { runAsUser: 7 }${mounted('projected: { sources: [{ serviceAccountToken: { path: t, expirationSeconds: 600, user: 7 } }, { clusterTrustBundle: { path: b, user: 7 } }] }')}`,
    ),
    [],
  ],
  [
    'tokens, trust bundles and certificates belong to the user that all containers have',
    pod(`securityContext: { runAsUser: 7 }${mounted(`projected: { sources: [${OWN_SOURCES}] }`)}`),
    [],
  ],
  [
    'the same beside a Secret',
    pod(
      `securityContext: { runAsUser: 7 }${mounted(`projected: { sources: [${OWN_SOURCES}, { secret: { name: s } }] }`)}`,
    ),
    ['NO_FS_GROUP'],
  ],
  [
    'the same with a container that has another user',
    pod(`volumes: [{ name: v, projected: { sources: [${OWN_SOURCES}] } }]
containers: [{ name: c, securityContext: { runAsUser: 7 } }, { name: d, securityContext: { runAsUser: 8 } }]`),
    ['NO_FS_GROUP'],
  ],
  [
    'the same with a user that only the image knows',
    pod(`securityContext: { runAsNonRoot: true }${mounted(`projected: { sources: [${OWN_SOURCES}] }`)}`),
    ['NO_FS_GROUP'],
  ],
  ['subPath of a CSI volume', pod(mounted('csi: { driver: d }', ', subPath: k')), ['SUBPATH']],
  [
    'env from a file',
    pod(
      'containers: [{ name: c, env: [{ name: A, valueFrom: { fileKeyRef: { volumeName: v, path: p, key: A } } }] }]',
    ),
    ['ENV_FILE'],
  ],
  ['an image as a volume', pod(mounted('image: { reference: r }')), ['IMAGE_VOLUME']],
  [
    'a pod certificate in two files',
    pod(
      mounted(
        'projected: { sources: [{ podCertificate: { keyType: ED25519, keyPath: k, certificateChainPath: c } }] }',
      ),
    ),
    ['SPLIT_CERTIFICATE'],
  ],
  [
    'a variable names a file of a pod certificate',
    certificate('', '{ name: PGSSLCERT, value: /etc/v/bundle.pem }'),
    ['SHORT_CERTIFICATE'],
  ],
  [
    'the same with the default that the API server stores',
    certificate(', maxExpirationSeconds: 86400', '{ name: PGSSLCERT, value: /etc/v/bundle.pem }'),
    ['SHORT_CERTIFICATE'],
  ],
  [
    'the same with maxExpirationSeconds',
    certificate(', maxExpirationSeconds: 7862400', '{ name: PGSSLCERT, value: /etc/v/bundle.pem }'),
    [],
  ],
  [
    'variables of the library, and of other paths',
    certificate('', '{ name: RESILIENT_WATCHER_CA, value: /etc/v/ca.pem }, { name: A, value: /etc/values }'),
    [],
  ],
  [
    'a variable that is read once names a file of a volume that changes',
    certificate('', '{ name: NODE_EXTRA_CA_CERTS, value: /etc/v/ca.pem }'),
    ['CA_READ_ONCE'],
  ],
  [
    'lifetimes that the API server refuses',
    pod(
      mounted(
        'projected: { sources: [{ serviceAccountToken: { path: t, expirationSeconds: 599 } }, { podCertificate: { keyType: ED25519, maxExpirationSeconds: 3599, credentialBundlePath: p } }] }',
      ),
    ),
    ['EXPIRATION_REFUSED', 'EXPIRATION_REFUSED'],
  ],
  [
    'a volume that is not defined',
    pod('containers: [{ name: c, volumeMounts: [{ name: v, mountPath: /v }] }]'),
    ['UNDEFINED_VOLUME'],
  ],
  [
    'a volume of a claim of a StatefulSet',
    `kind: StatefulSet
spec:
  volumeClaimTemplates: [{ metadata: { name: v } }]
  template: { spec: { containers: [{ name: c, volumeMounts: [{ name: v, mountPath: /v }] }] } }`,
    [],
  ],
  ...([256, 288] as const).map(
    (mode) =>
      [
        `defaultMode ${mode.toString(8)} with a user and no fsGroup`,
        pod(`securityContext: { runAsUser: 7 }${mounted(`secret: { secretName: s, defaultMode: ${mode} }`)}`),
        ['UNREADABLE'],
      ] as const,
  ),
  [
    'the same with fsGroup',
    pod(
      `securityContext: { runAsUser: 7, fsGroup: 7 }${mounted('secret: { secretName: s, defaultMode: 256 }')}`,
    ),
    [],
  ],
  ['runs as root', pod(`securityContext: { runAsUser: 0 }${mounted('secret: { secretName: s }')}`), []],
  [
    'a Deployment, a CronJob, and both in a List',
    `kind: List
items:
  - kind: Deployment
    metadata: { name: d }
    spec: { template: { spec: { containers: [{ name: c, envFrom: [{ secretRef: { name: s } }] }] } } }
  - kind: CronJob
    metadata: { name: j }
    spec: { jobTemplate: { spec: { template: { spec: { containers: [{ name: c, envFrom: [{ secretRef: { name: s } }] }] } } } } }`,
    ['ENV_FROM', 'ENV_FROM'],
  ],
  [
    'several documents',
    'kind: Secret\nimmutable: true\n---\n---\nkind: Secret\nimmutable: true',
    ['IMMUTABLE', 'IMMUTABLE'],
  ],
  ['what is no manifest', 'just text\n---\n[1, 2]\n---\nkind: 3\n---\nspec: { template: 1 }', []],
  ['manifests of wrong types', 'kind: Pod\nspec: { volumes: 1, containers: [null, 2, { env: {} }] }', []],
];

test.each(cases)('%s', (_, manifest, ids) => {
  const documents = parseAllDocuments(manifest).map((document) => document.toJS() as unknown);
  expect(findingsInManifests(documents).map(({ id }) => id)).toEqual(ids);
});

test('a finding names the object, the container, the mount and the fix', () => {
  const [found] = findingsInManifests([
    {
      kind: 'Deployment',
      metadata: { name: 'shop' },
      spec: {
        template: {
          spec: {
            volumes: [{ name: 'conf', configMap: { name: 'm' } }],
            containers: [
              { name: 'web', volumeMounts: [{ name: 'conf', mountPath: '/etc/a', subPath: 'a' }] },
            ],
          },
        },
      },
    },
  ]);
  expect(found).toEqual({
    id: 'SUBPATH',
    severity: 'never',
    message: 'Deployment/shop: /etc/a of container web mounts a subPath of volume conf',
    fix: expect.stringContaining('Mount the whole volume') as string,
  });
});

test('a Service that sets variables like those of a pod is a finding, unless the pod has no service links', () => {
  const service = {
    kind: 'Service',
    metadata: { name: 'my-app' },
    spec: { selector: { app: 'web' } },
  };
  const found = (spec: object, labels: object, namespace?: string): string[] => {
    const pod = { kind: 'Pod', metadata: { name: 'p', labels, namespace }, spec };
    return findingsInManifests([service, pod]).map(({ id }) => id);
  };
  const containers = [{ name: 'c', env: [{ name: 'MY_APP_LEVEL', value: 'info' }] }];
  expect(found({ containers }, {})).toEqual(['SERVICE_LINKS']);
  expect(found({ containers: [{ name: 'c' }] }, { app: 'web' })).toEqual(['SERVICE_LINKS']);
  expect(found({ containers: [{ name: 'c' }] }, { app: 'other' })).toEqual([]);
  expect(found({ containers }, { app: 'web' }, 'other')).toEqual([]);
  expect(found({ containers, enableServiceLinks: false }, { app: 'web' })).toEqual([]);
});

test('the variables of Services are one finding, however many pods have them', () => {
  const service = { kind: 'Service', metadata: { name: 'web' }, spec: { selector: { app: 'web' } } };
  const pods = Array.from({ length: 7 }, (_, at) => ({
    kind: 'Pod',
    metadata: { name: `p${at}`, labels: { app: 'web' } },
    spec: { containers: [{ name: 'c' }] },
  }));
  const found = findingsInManifests([service, ...pods]);
  expect(found.map(({ id }) => id)).toEqual(['SERVICE_LINKS']);
  expect(found[0]?.message).toContain('Pod/p0 (WEB_PORT), Pod/p1 (WEB_PORT)');
  expect(found[0]?.message).toMatch(/ and 2 more$/);
});

/** A ConfigMap and a Secret, and a pod that mounts them or names their keys. */
const withKeys = (spec: string, data = 'data: { app.yml: a, other: b }'): string => `
kind: ConfigMap
metadata: { name: m }
${data}
---
kind: Secret
metadata: { name: s }
stringData: { password: x }
---
${pod(spec)}`;

const keyCases: readonly (readonly [name: string, manifest: string, says: string | undefined])[] = [
  [
    'a key that is there',
    withKeys(mounted('configMap: { name: m, items: [{ key: app.yml, path: a }] }')),
    undefined,
  ],
  [
    'an item with a missing key',
    withKeys(mounted('configMap: { name: m, items: [{ key: app.yaml, path: a }] }')),
    'Pod/app: ConfigMap/m has no key "app.yaml", which volume v takes; there is "app.yml"',
  ],
  [
    'a missing key that is optional',
    withKeys(mounted('configMap: { name: m, optional: true, items: [{ key: app.yaml, path: a }] }')),
    undefined,
  ],
  [
    'an item of a Secret in a projected volume',
    withKeys(
      mounted('projected: { sources: [{ secret: { name: s, items: [{ key: Password, path: a }] } }] }'),
    ),
    'Pod/app: Secret/s has no key "Password", which volume v takes; there is "password"',
  ],
  [
    'a key that is only in binaryData',
    withKeys(mounted('configMap: { name: m, items: [{ key: b, path: a }] }'), 'binaryData: { b: eA== }'),
    undefined,
  ],
  [
    'an object that is filled in the cluster',
    withKeys(mounted('configMap: { name: m, items: [{ key: ca.crt, path: a }] }'), 'data: {}'),
    undefined,
  ],
  [
    'an object of another namespace',
    withKeys(mounted('configMap: { name: m, items: [{ key: k, path: a }] }')).replace(
      'm }',
      'm, namespace: n }',
    ),
    undefined,
  ],
  [
    'a file that an argument names',
    withKeys(
      mounted('configMap: { name: m }').replace('name: c,', 'name: c, args: [--config=/etc/v/app.yaml],'),
    ),
    'Pod/app: container c names /etc/v/app.yaml, which is not in volume v; there is "app.yml"',
  ],
  [
    'a file that a variable names, as it is there',
    withKeys(
      mounted('configMap: { name: m }').replace(
        'name: c,',
        'name: c, env: [{ name: A, value: /etc/v/app.yml }, { name: B, value: "/etc/v/*.yaml" }, { name: C, value: /etc/v/..data/other }, { name: D, value: /srv/etc/v/x }],',
      ),
    ),
    undefined,
  ],
  [
    'a file that another mount below has',
    withKeys(`
volumes: [{ name: v, configMap: { name: m } }, { name: e, emptyDir: {} }]
containers: [{ name: c, args: [/etc/v/e/x], volumeMounts: [{ name: v, mountPath: /etc/v }, { name: e, mountPath: /etc/v/e }] }]`),
    undefined,
  ],
  [
    'a file of items by its path, of a ConfigMap that is elsewhere',
    withKeys(
      mounted('configMap: { name: x, items: [{ key: k, path: conf.d/a }] }').replace(
        'name: c,',
        'name: c, command: [app, /etc/v/conf.d, /etc/v/k],',
      ),
    ),
    'Pod/app: container c names /etc/v/k, which is not in volume v; there is "conf.d/a"',
  ],
  [
    'a volume that is not all known',
    withKeys(
      mounted('projected: { sources: [{ configMap: { name: m } }, { configMap: { name: x } }] }').replace(
        'name: c,',
        'name: c, args: [/etc/v/nothing],',
      ),
    ),
    undefined,
  ],
];

test.each(keyCases)('%s', (_, manifest, says) => {
  const documents = parseAllDocuments(manifest).map((document) => document.toJS() as unknown);
  expect(findingsInManifests(documents).map(({ message }) => message)).toEqual(
    says === undefined ? [] : [says],
  );
});

test('keys of variables and of subPath mounts are known, too', () => {
  const spec = `
volumes: [{ name: v, configMap: { name: m } }]
containers:
  - name: c
    env: [{ name: A, valueFrom: { secretKeyRef: { name: s, key: pasword } } }]
    volumeMounts: [{ name: v, mountPath: /etc/app.yaml, subPath: app.yaml }]`;
  const documents = parseAllDocuments(withKeys(spec)).map((document) => document.toJS() as unknown);
  const found = findingsInManifests(documents).filter(({ id }) => id === 'MISSING_KEY');
  expect(found.map(({ message }) => message)).toEqual([
    'Pod/app: Secret/s has no key "pasword", which container c takes; there is "password"',
    'Pod/app: container c mounts subPath app.yaml of volume v, which has no such file; there is "app.yml"',
  ]);
});

test('anything but an array of documents is refused', () => {
  expect(() => findingsInManifests('x' as never)).toThrow(
    new TypeError('findingsInManifests: documents must be an array, got "x"'),
  );
});
