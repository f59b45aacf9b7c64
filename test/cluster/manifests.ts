/** The manifests of the packages, made fit for a namespace and the images of the cluster test. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';

import type { KubernetesObject, V1PodSpec } from '@kubernetes/client-node';
import { parseAllDocuments } from 'yaml';

import { manifestPath } from '../support/manifest-files.js';
import type { ClusterSettings } from './settings.js';

/** An object with a name. Those with pods have them in `spec.template`. */
export interface Manifest extends KubernetesObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec?: { readonly template?: { readonly spec: V1PodSpec } };
}

/** The directory of a node that a pod may write to when `E2E_HOST_PATH` allows it, instead of the one for CNI plugins. */
export const HOST_PATH = '/run';

/** The documents of one file. */
export function manifestsIn(file: string): Manifest[] {
  return documentsOf(readFileSync(manifestPath(file), 'utf8'));
}

/** What the Kustomize base builds; undefined where neither `kubectl` nor `kustomize` is installed. */
export function kustomized(): Manifest[] | undefined {
  const programs = [
    ['kubectl', 'kustomize'],
    ['kustomize', 'build'],
  ] as const;
  for (const [program, command] of programs) {
    const { error, status, stdout, stderr } = spawnSync(
      program,
      [command, dirname(manifestPath('kustomization.yaml'))],
      { encoding: 'utf8' },
    );
    if (error) continue;
    if (status !== 0) throw new Error(`${program} ${command}: ${stderr}`);
    return documentsOf(stdout);
  }
  return undefined;
}

function documentsOf(text: string): Manifest[] {
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

/** The parts of the settings that change a manifest. */
type Changes = Pick<ClusterSettings, 'image' | 'hostNetwork' | 'hostPath' | 'nginx' | 'prometheus'>;

/**
 * The same object in another namespace, with other images, and without what the settings do not allow. All else stays as
 * it is, since it is what is tested.
 */
export function fitted(manifest: Manifest, namespace: string, changes: Changes): Manifest {
  const text = JSON.stringify(manifest);
  const { namespace: own } = manifest.metadata;
  // A subject and the value of a flag name it, too.
  const moved = own
    ? text.replaceAll(`"${own}"`, `"${namespace}"`).replaceAll(`=${own}/`, `=${namespace}/`)
    : text;
  const parsed = JSON.parse(moved) as Manifest;
  const object: Manifest = { ...parsed, metadata: { ...parsed.metadata, namespace } };
  if (object.spec?.template) fitPod(object.spec.template.spec, changes);
  return object;
}

function fitPod(pod: V1PodSpec, { image, hostNetwork, hostPath, nginx, prometheus }: Changes): void {
  for (const container of [...(pod.initContainers ?? []), ...pod.containers]) {
    const [name = ''] = container.image?.split(':') ?? [];
    const replacements: Readonly<Record<string, string | undefined>> = {
      'resilient-watcher': image,
      app: image,
      'nginxinc/nginx-unprivileged': nginx,
      'prom/prometheus': prometheus,
    };
    if (!(name in replacements)) throw new Error(`The image ${container.image} is not known to the test`);
    const replacement = replacements[name];
    if (replacement !== undefined) container.image = replacement;
  }
  if (!hostNetwork) delete pod.hostNetwork;
  for (const volume of pod.volumes ?? []) {
    if (!volume.hostPath) continue;
    if (hostPath) {
      volume.hostPath = { path: HOST_PATH, type: 'Directory' };
    } else {
      delete volume.hostPath;
      volume.emptyDir = {};
    }
  }
}
