/** The manifests of the packages against the types of Kubernetes, and what they promise against themselves. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { dumpYaml, loadYaml } from '@kubernetes/client-node';
import {
  PrometheusRule,
  ServiceMonitor,
} from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { findingsInManifests } from '@resilient-watcher/cli/manifests';
import {
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
} from 'kubernetes-models/admissionregistration.k8s.io/v1';
import { DaemonSet, Deployment } from 'kubernetes-models/apps/v1';
import {
  ClusterRole,
  ClusterRoleBinding,
  Role,
  RoleBinding,
} from 'kubernetes-models/rbac.authorization.k8s.io/v1';
import { ConfigMap, Namespace, Service, ServiceAccount } from 'kubernetes-models/v1';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

import { runMain } from '../../../packages/cli/test/support/command-line.js';
import { manifestFiles, manifestPath } from '../../support/manifest-files.js';

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

const documents = manifestFiles.flatMap((path) =>
  parseAllDocuments(readFileSync(path, 'utf8')).map((document) => {
    const manifest = document.toJS() as Manifest;
    return { name: `${basename(path)}: ${manifest.kind}/${manifest.metadata.name}`, manifest };
  }),
);

const MODELS: Readonly<Record<string, new (data: never) => { validate(): void }>> = {
  ClusterRole,
  ClusterRoleBinding,
  ConfigMap,
  DaemonSet,
  Deployment,
  Namespace,
  Role,
  RoleBinding,
  Service,
  ServiceAccount,
  PrometheusRule,
  ServiceMonitor,
  ValidatingAdmissionPolicy,
  ValidatingAdmissionPolicyBinding,
};

/** Kinds of the Prometheus operator, which the models of Kubernetes lack. */
const OPERATOR_KINDS = ['PrometheusRule', 'ServiceMonitor'];

/** What the OpenAPI schema refuses; it does not know unknown fields. */
function schemaFault({ kind, ...manifest }: Manifest): unknown {
  const Model = MODELS[kind];
  if (!Model) return `no model for ${kind}`;
  try {
    new Model({ kind, ...manifest } as never).validate();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Whether it survives a client that drops the fields it does not know. */
function hasOnlyKnownFields(manifest: Manifest): boolean {
  const known = parse(dumpYaml(loadYaml(JSON.stringify(manifest)))) as unknown;
  return isDeepStrictEqual(known, manifest);
}

describe.each(documents)('$name', ({ manifest }) => {
  test('is valid, and has no field that Kubernetes does not know', () => {
    expect(schemaFault(manifest)).toBeUndefined();
    if (!OPERATOR_KINDS.includes(manifest.kind)) expect(hasOnlyKnownFields(manifest)).toBe(true);
  });

  test('has nothing that keeps its volumes from being updated', () => {
    expect(findingsInManifests([manifest])).toEqual([]);
  });

  test('gives the program a command line that it understands', async () => {
    for (const args of argumentsIn(manifest)) {
      // With --help nothing is done, and each flag that the manifest uses is in the text.
      const own = args
        .slice(0, args.includes('--') ? args.indexOf('--') : undefined)
        // As kubelet expands a variable.
        .map((arg) => arg.replaceAll(/\$\(\w+\)/g, '1'));
      const { code, stdout } = await runMain([...own, '--help']);
      expect([code, stdout]).toEqual([0, expect.stringContaining(`resilient-watcher ${args[0] ?? ''}`)]);
      const flags = own.filter((arg) => arg.startsWith('--')).map((arg) => arg.split('=')[0] ?? '');
      for (const flag of flags) expect(stdout).toContain(`${flag} `);
    }
  });
});

test('the manifests of a file together have nothing that doctor finds', () => {
  for (const path of manifestFiles) {
    const manifests = parseAllDocuments(readFileSync(path, 'utf8')).map((one) => one.toJS() as unknown);
    expect([basename(path), findingsInManifests(manifests)]).toEqual([basename(path), []]);
  }
});

test('the checks find a wrong type, a missing field and an unknown field', () => {
  const deployment = documents.map(({ manifest }) => manifest).find(({ kind }) => kind === 'Deployment');
  const wrong = (change: object): Manifest => ({ ...structuredClone(deployment), ...change }) as Manifest;
  expect(schemaFault(wrong({ spec: { replicas: 'two' } }))).toBeDefined();
  expect(schemaFault(wrong({ spec: {} }))).toBeDefined();
  expect(hasOnlyKnownFields(wrong({ metadata: { name: 'x', lables: {} } }))).toBe(false);
});

test('sync-pods may do what it needs, and nothing else', () => {
  const roles = documents.filter(({ name }) => name.startsWith('sync-pods.yaml: ClusterRole/'));
  expect(roles.map(({ manifest }) => (manifest as unknown as { rules: unknown }).rules)).toEqual([
    [
      { apiGroups: [''], resources: ['configmaps'], verbs: ['list', 'watch'] },
      { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch', 'patch'] },
    ],
  ]);
});

test('the base of Kustomize refers to files that exist', () => {
  const base = manifestPath('kustomization.yaml');
  const text = readFileSync(base, 'utf8');
  const { resources } = parseAllDocuments(text)[0]?.toJS() as { resources: string[] };
  expect(readdirSync(dirname(base))).toEqual(expect.arrayContaining(resources));
});

test('a sidecar has read its files before the application does, or acts on what it finds at its start', () => {
  const sidecars = documents.flatMap(({ manifest }) => sidecarsIn(manifest));
  expect(sidecars.map(({ args }) => args[1])).toEqual(['/etc/nginx/conf.d', '/etc/prometheus']);
  for (const { args, startupProbe } of sidecars)
    expect(args.includes('--initial') || startupProbe?.httpGet?.path).toBeOneOf([true, '/readyz']);
});

interface Sidecar {
  readonly args: readonly string[];
  readonly startupProbe?: { readonly httpGet?: { readonly path: string } };
}

/** The containers that kubelet starts first, and keeps running. */
function sidecarsIn(value: unknown): Sidecar[] {
  if (typeof value !== 'object' || value === null) return [];
  const { restartPolicy, args } = value as { restartPolicy?: unknown; args?: unknown };
  return restartPolicy === 'Always' && args ? [value as Sidecar] : Object.values(value).flatMap(sidecarsIn);
}

/** The arguments of each container that runs the program. */
function argumentsIn(value: unknown): string[][] {
  if (typeof value !== 'object' || value === null) return [];
  const { image, command, args } = value as { image?: unknown; command?: unknown; args?: string[] };
  const isProgram = String(image).startsWith('resilient-watcher:') || String(command) === 'resilient-watcher';
  return isProgram && args ? [args] : Object.values(value).flatMap(argumentsIn);
}
