/** Puts the entries of one kubeconfig into another, and leaves everything else in that as it is, comments included. */
import type { Document, Scalar, YAMLMap, YAMLSeq } from 'yaml';

import { loadYaml } from '../core/errors/yaml-package.js';
import { isNonEmptyString } from '../core/options/options.js';
import { kubeconfigError, type KubernetesError } from './kubernetes-error.js';

type Yaml = Awaited<ReturnType<typeof loadYaml>>;

const LISTS = ['clusters', 'users', 'contexts'] as const;
const CURRENT = 'current-context';
/** What stands for no value. */
const NOTHING: readonly unknown[] = ['', '~', 'null'];

/**
 * An entry of the same name is replaced. The current context stays, if there is one. JSON stays JSON.
 * @param existing the text of a kubeconfig, YAML or JSON; empty if there is none.
 * @param added the text of another one.
 * @param path for messages, which quote neither text.
 * @throws {KubernetesError} `ERR_KUBECONFIG` if the existing text is no kubeconfig.
 */
export async function mergeKubeconfig(existing: string, added: string, path: string): Promise<string> {
  const yaml = await loadYaml();
  const own = yaml.parseDocument(added);
  const document = kubeconfigIn(existing, yaml, path);
  // What is left are comments.
  if (document.contents === null) return existing.trim() === '' ? added : `${existing.trimEnd()}\n${added}`;
  const json = jsonIn(existing);
  if (json) return mergedJson(json, own.toJS() as Config, existing, path);
  for (const name of LISTS) {
    const list = listIn(document, name, yaml, path);
    for (const item of (own.get(name) as YAMLSeq<YAMLMap>).items) put(document, list, item, yaml);
  }
  if (NOTHING.includes(document.get(CURRENT) ?? '')) document.set(CURRENT, own.get(CURRENT, true));
  try {
    // Long values are not folded.
    return document.toString({ lineWidth: 0 });
  } catch {
    throw unusable(path, 'an alias in it has no anchor');
  }
}

type Config = Record<string, unknown>;

function jsonIn(text: string): Config | undefined {
  try {
    return JSON.parse(text) as Config;
  } catch {
    return undefined;
  }
}

function mergedJson(config: Config, own: Config, existing: string, path: string): string {
  const nameOf = (item: unknown): unknown => (Object(item) as { name?: unknown }).name;
  for (const name of LISTS) {
    const list = config[name] ?? [];
    if (!Array.isArray(list)) throw notList(path, name);
    for (const item of own[name] as unknown[]) {
      const at = list.findIndex((other) => nameOf(other) === nameOf(item));
      list.splice(at < 0 ? list.length : at, 1, item);
    }
    config[name] = list;
  }
  config[CURRENT] = isNonEmptyString(config[CURRENT]) ? config[CURRENT] : own[CURRENT];
  const [, indent = ''] = /^\s*\{\r?\n([ \t]+)/.exec(existing) ?? [];
  return `${JSON.stringify(config, null, indent)}\n`;
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
  if (list !== undefined && !NOTHING.includes(list)) throw notList(path, name);
  const added = new yaml.YAMLSeq();
  const nothing = document.get(name, true);
  if (yaml.isScalar(nothing)) added.commentBefore = commentsOf(nothing);
  document.set(name, added);
  return added;
}

function put(document: Document, list: YAMLSeq, item: YAMLMap, yaml: Yaml): void {
  const name = item.get('name');
  const at = list.items.findIndex((other) => yaml.isMap(other) && other.get('name') === name);
  if (at < 0) {
    list.items.push(item);
    return;
  }
  const old = list.items[at] as YAMLMap;
  item.commentBefore = old.commentBefore ?? null;
  item.spaceBefore = old.spaceBefore ?? false;
  item.comment = lastComments(old, yaml);
  list.items[at] = item;
  keepAnchors(document, old, yaml);
}

/** The comments after the last value of an entry, which may be about the next one. */
function lastComments(entry: YAMLMap, yaml: Yaml): string | null {
  const found: string[] = [];
  for (let node: unknown = entry; yaml.isCollection(node);) {
    if (node.comment) found.unshift(node.comment);
    const last: unknown = node.items.at(-1);
    node = yaml.isPair(last) ? last.value : last;
  }
  return found.length === 0 ? null : found.join('\n');
}

function commentsOf({ commentBefore, comment }: Scalar): string | null {
  const found = [commentBefore, comment].filter((text) => typeof text === 'string');
  return found.length === 0 ? null : found.join('\n');
}

type Anchored = YAMLMap | YAMLSeq | Scalar;

/** What an alias elsewhere stands for takes the place of the first alias. */
function keepAnchors(document: Document, old: YAMLMap, yaml: Yaml): void {
  const anchors = new Map<string, Anchored>();
  const collect = (node: Anchored): void => {
    if (node.anchor !== undefined) anchors.set(node.anchor, node);
  };
  yaml.visit(old, {
    Map: (_, node) => collect(node),
    Seq: (_, node) => collect(node),
    Scalar: (_, node) => collect(node),
  });
  if (anchors.size === 0) return;
  const placed = (node: Anchored): void => {
    anchors.delete(node.anchor ?? '');
  };
  yaml.visit(document, {
    Map: (_, node) => placed(node),
    Seq: (_, node) => placed(node),
    Scalar: (_, node) => placed(node),
    Alias: (_, { source }) => anchors.get(source),
  });
}

function notList(path: string, name: string): KubernetesError {
  return unusable(path, `"${name}" in it is not a list`);
}

function unusable(path: string, why: string): KubernetesError {
  return kubeconfigError(`Nothing can be added to the kubeconfig ${path}: ${why}; it was not changed`);
}
