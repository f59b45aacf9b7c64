/** What `doctor --manifest` finds in manifests. */
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';

import { findingsInManifests } from 'resilient-watcher/doctor';

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
