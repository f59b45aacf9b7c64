/** The manifests of the packages through Helm and Kustomize, where these programs are on the PATH. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Deployment } from 'kubernetes-models/apps/v1';
import { expect, test, type TestContext } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

import { runMain } from '../../../packages/cli/test/support/command-line.js';
import { manifestPath } from '../../support/manifest-files.js';
import { skip } from '../../support/namespace.js';
import { temporaryDirectory } from '../../support/temporary-directory.js';

const packages = fileURLToPath(new URL('../../../packages/', import.meta.url));
/** The snippets of Helm. */
const SNIPPETS = ['cli/deploy/helm/_resilient-watcher.tpl', 'sync-pods/deploy/helm/_sync-pods.tpl'];

/** What a program prints; the test is skipped where there is no such program. */
function output(context: TestContext, program: string, ...args: string[]): string {
  const { error, status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (error) skip(context, `${program} is not on the PATH`);
  expect(status, stderr).toBe(0);
  return stdout;
}

/** A chart with the snippets and this template, which uses them as the comments at their heads show. */
function chartWith(template: string): string {
  const directory = temporaryDirectory();
  mkdirSync(join(directory, 'templates'));
  for (const snippet of SNIPPETS)
    copyFileSync(join(packages, snippet), join(directory, 'templates', basename(snippet)));
  writeFileSync(join(directory, 'Chart.yaml'), 'apiVersion: v2\nname: shop\nversion: 1.0.0\n');
  writeFileSync(join(directory, 'templates/template.yaml'), template);
  return directory;
}

/** A chart with the sidecar of nginx, and a second one with these further entries if there are any. */
function chart(mount: string, second = ''): string {
  const include = (entries: string): string => `{{- include "resilient-watcher.sidecar" (dict
          "image" "resilient-watcher:0.1.0"
          "volume" "conf"
          "path" "/etc/nginx/conf.d"
          ${entries}) | nindent 8 }}`;
  return chartWith(
    `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector:
    matchLabels: { app: shop }
  template:
    metadata:
      labels: { app: shop }
    spec:
      shareProcessNamespace: true
      initContainers:
        ${include('"args" (list "--signal=HUP" "--process=nginx")')}
        ${second && include(second)}
      containers:
        - name: nginx
          image: nginx
          volumeMounts: [{ name: conf, ${mount} }]
      volumes:
        - name: conf
          configMap: { name: shop }
`,
  );
}

interface Rendered {
  readonly kind: string;
  readonly rules?: unknown;
  readonly spec?: { readonly template: { readonly spec: Readonly<Record<string, unknown>> } };
}

/** What sync-pods runs as, and what it may do. */
function partsOf(manifests: string): unknown[] {
  const documents = parseAllDocuments(manifests).map((document) => document.toJS() as Rendered);
  return documents
    .filter(({ kind }) => ['ClusterRole', 'Deployment'].includes(kind))
    .map(({ rules, spec }) => {
      const { topologySpreadConstraints: _, ...pod } = spec?.template.spec ?? {};
      return { rules, pod };
    });
}

test('the Helm snippet renders a valid native sidecar, and doctor finds nothing in it', async (context) => {
  const rendered = output(context, 'helm', 'template', 'shop', chart('mountPath: /etc/nginx/conf.d'));
  const deployment = parse(rendered) as ConstructorParameters<typeof Deployment>[0];
  new Deployment(deployment).validate();
  expect(deployment?.spec?.template.spec?.initContainers).toMatchObject([
    {
      name: 'reload',
      image: 'resilient-watcher:0.1.0',
      restartPolicy: 'Always',
      args: ['watch', '/etc/nginx/conf.d', '--listen=:9533', '--signal=HUP', '--process=nginx'],
      startupProbe: { httpGet: { path: '/readyz', port: 9533 } },
      volumeMounts: [{ name: 'conf', mountPath: '/etc/nginx/conf.d', readOnly: true }],
    },
  ]);
  const { code, stdout } = await runMain(['doctor', '--manifest', '-'], { input: rendered });
  expect([code, stdout]).toEqual([0, 'nothing found\n']);
});

test('two sidecars of the Helm snippet in one pod share neither a name nor a port', async (context) => {
  const mount = 'mountPath: /etc/nginx/conf.d';
  const rendered = output(context, 'helm', 'template', 'shop', chart(mount, '"name" "audit" "port" 9534'));
  const deployment = parse(rendered) as ConstructorParameters<typeof Deployment>[0];
  new Deployment(deployment).validate();
  const sidecars = deployment?.spec?.template.spec?.initContainers ?? [];
  const addresses = sidecars.map(({ name, args, startupProbe, livenessProbe }) => [
    name,
    args?.filter((arg) => arg.startsWith('--listen')),
    startupProbe?.httpGet?.port,
    livenessProbe?.httpGet?.port,
  ]);
  expect(addresses).toEqual([
    ['reload', ['--listen=:9533'], 9533, 9533],
    ['audit', ['--listen=:9534'], 9534, 9534],
  ]);
  const { code, stdout } = await runMain(['doctor', '--manifest', '-'], { input: rendered });
  expect([code, stdout]).toEqual([0, 'nothing found\n']);
});

test('helm template . | resilient-watcher doctor --manifest - finds a subPath', async (context) => {
  const mount = 'mountPath: /etc/nginx/conf.d/a.conf, subPath: a.conf';
  const rendered = output(context, 'helm', 'template', 'shop', chart(mount));
  const { code, stdout } = await runMain(['doctor', '--manifest', '-'], { input: rendered });
  expect([code, stdout]).toEqual([3, expect.stringMatching(/SUBPATH\n.*Deployment\/shop/)]);
});

test('the Helm part of sync-pods is its manifest; Secrets are an option', (context) => {
  const include = (options: string): string =>
    chartWith(
      `{{ include "resilient-watcher.sync-pods" (dict "image" "resilient-watcher:0.1.0" "namespace" .Release.Namespace ${options}) }}`,
    );
  const plain = output(context, 'helm', 'template', 'shop', include(''));
  const manifest = readFileSync(manifestPath('sync-pods.yaml'), 'utf8');
  expect(partsOf(plain)).toEqual(partsOf(manifest));
  const options = '"secrets" true "allNamespaces" false "args" (list "--namespace=shop")';
  const other = output(context, 'helm', 'template', 'shop', include(options));
  expect(partsOf(other)).toMatchObject([
    { rules: [{ resources: ['configmaps', 'secrets'] }, { resources: ['pods'] }] },
    {
      pod: {
        containers: [{ args: ['sync-pods', '--secrets', '--listen=:9533', '--json', '--namespace=shop'] }],
      },
    },
  ]);
});

test('a chart may have what the Prometheus Operator reads as it is', (context) => {
  for (const file of ['service-monitor.yaml', 'prometheus-rule.yaml']) {
    const manifest = readFileSync(manifestPath(file), 'utf8');
    expect(parse(output(context, 'helm', 'template', 'shop', chartWith(manifest)))).toEqual(parse(manifest));
  }
});

test('the Kustomize base builds, and an overlay replaces its image and adds what the Prometheus Operator reads', (context) => {
  const overlay = join(temporaryDirectory(), 'overlay');
  const base = join(overlay, 'base');
  mkdirSync(base, { recursive: true });
  for (const file of ['kustomization.yaml', 'nginx-sidecar.yaml']) {
    copyFileSync(manifestPath(file), join(base, file));
  }
  const ofOperator = ['service-monitor.yaml', 'prometheus-rule.yaml'];
  for (const file of ofOperator) copyFileSync(manifestPath(file), join(overlay, file));
  writeFileSync(
    join(overlay, 'kustomization.yaml'),
    `resources: [base, ${ofOperator.join(', ')}]\nimages: [{ name: resilient-watcher, newName: registry.example/watcher, newTag: 1.2.3 }]\n`,
  );
  const documents = parseAllDocuments(output(context, 'kustomize', 'build', overlay));
  const manifests = documents.map((document) => document.toJS() as { kind: string });
  expect(manifests.map(({ kind }) => kind).sort()).toEqual([
    'ConfigMap',
    'Deployment',
    'PrometheusRule',
    'Service',
    'ServiceMonitor',
  ]);
  const written = parse(readFileSync(manifestPath('prometheus-rule.yaml'), 'utf8')) as { spec: unknown };
  expect(manifests.find(({ kind }) => kind === 'PrometheusRule')).toMatchObject({ spec: written.spec });
  expect(JSON.stringify(manifests)).toContain('"image":"registry.example/watcher:1.2.3"');
});
