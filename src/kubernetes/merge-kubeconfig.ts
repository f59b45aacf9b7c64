/** Puts the entries of one kubeconfig into another, and leaves everything else in that as it is, comments included. */
import type { Document, YAMLMap, YAMLSeq } from 'yaml';

import { loadYaml } from '../core/errors/yaml-package.js';
import { KubernetesError } from './kubernetes-error.js';

type Yaml = Awaited<ReturnType<typeof loadYaml>>;

const LISTS = ['clusters', 'users', 'contexts'] as const;
const CURRENT = 'current-context';
/** What stands for no value. */
const NOTHING: readonly unknown[] = ['', '~', 'null'];

/**
 * An entry of the same name is replaced. The current context stays, if there is one.
 * @param existing the text of a kubeconfig, YAML or JSON; empty if there is none.
 * @param added the text of another one.
 * @param path for messages, which quote neither text.
 * @throws {KubernetesError} `ERR_KUBECONFIG` if the existing text is no kubeconfig.
 */
export async function mergeKubeconfig(existing: string, added: string, path: string): Promise<string> {
  const yaml = await loadYaml();
  const own = yaml.parseDocument(added);
  const document = kubeconfigIn(existing, yaml, path);
  if (document.contents === null) return added;
  for (const name of LISTS) {
    const list = listIn(document, name, yaml, path);
    for (const item of (own.get(name) as YAMLSeq<YAMLMap>).items) put(list, item, yaml);
  }
  if (NOTHING.includes(document.get(CURRENT) ?? '')) document.set(CURRENT, own.get(CURRENT, true));
  // Long values are not folded.
  return document.toString({ lineWidth: 0 });
}

function kubeconfigIn(text: string, yaml: Yaml, path: string): Document {
  // Every value stays as it is written. Pretty errors would quote the text.
  const document = yaml.parseDocument(text, { schema: 'failsafe', prettyErrors: false });
  const [error] = document.errors;
  if (error) {
    const line = text.slice(0, error.pos[0]).split('\n').length;
    throw unusable(path, `it is not YAML at line ${line} (${error.code})`);
  }
  if (document.contents !== null && !yaml.isMap(document.contents))
    throw unusable(path, 'it is no kubeconfig');
  return document;
}

/** The list of this name, which is added if there is none. */
function listIn(document: Document, name: string, yaml: Yaml, path: string): YAMLSeq {
  const list = document.get(name);
  if (yaml.isSeq(list)) return list;
  if (list !== undefined && !NOTHING.includes(list)) throw unusable(path, `"${name}" in it is not a list`);
  const added = new yaml.YAMLSeq();
  document.set(name, added);
  return added;
}

function put(list: YAMLSeq, item: YAMLMap, yaml: Yaml): void {
  const name = item.get('name');
  const at = list.items.findIndex((other) => yaml.isMap(other) && other.get('name') === name);
  if (at >= 0) list.items[at] = item;
  else list.items.push(item);
}

function unusable(path: string, why: string): KubernetesError {
  const message = `Nothing can be added to the kubeconfig ${path}: ${why}; it was not changed`;
  return new KubernetesError('ERR_KUBECONFIG', message);
}
