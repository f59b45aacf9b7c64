/** The current cluster and user of kubeconfig files, as client-go reads them: client-node drops a part of what they say. */
import { delimiter, dirname, resolve } from 'node:path';

import type * as clientNode from '@kubernetes/client-node';

import { isNonEmptyString, isPlainObject } from '../core/options/options.js';
import { readFileIfAny } from '../fs/read-file.js';
import type { ReadingPorts } from '../fs/stable-read.js';
import { kubeconfigError, type KubernetesError } from './kubernetes-error.js';

/** Kubeconfigs, bundles and keys have some KiB. */
export const LARGEST_BYTES = 4 * 1024 * 1024;

type YamlReader = Pick<typeof clientNode, 'loadYaml'>;

/** What client-node does not know of a user. */
export interface KubeconfigUser extends clientNode.User {
  readonly tokenFile?: string | undefined;
  /** The headers that impersonate more than a name. */
  readonly impersonation?: Readonly<Record<string, string | string[]>>;
}

/** What client-node does not know of a cluster. */
export interface KubeconfigCluster extends clientNode.Cluster {
  /** What plugins of its users are to know. */
  readonly pluginConfig?: unknown;
}

const LISTS = { clusters: 'cluster', contexts: 'context', users: 'user' } as const;

type Fields = Readonly<Record<string, unknown>>;

/** An entry, and where it was found. */
interface Entry {
  readonly name: string;
  readonly fields: Fields;
  readonly path: string;
}

/**
 * @param given the path of a file, or several as in the variable `KUBECONFIG`. They are merged as by kubectl: of
 * entries with the same name the first one counts, and so does the first current context; files that do not exist are
 * left out.
 * @throws {KubernetesError} `ERR_KUBECONFIG`; the message quotes no secret.
 */
export async function readKubeconfig(
  given: string,
  client: YamlReader,
  ports: ReadingPorts,
): Promise<{ readonly cluster: KubeconfigCluster; readonly user: KubeconfigUser }> {
  const entries = { clusters: new Map(), contexts: new Map(), users: new Map() } as Record<
    keyof typeof LISTS,
    Map<unknown, Entry>
  >;
  let current: unknown;
  for (const [path, bytes] of await filesOf(given, ports)) {
    const config = parsed(bytes, path, client);
    current = isNonEmptyString(current) ? current : config['current-context'];
    for (const [list, kind] of Object.entries(LISTS) as ['clusters', 'cluster'][]) {
      const found: unknown = config[list] ?? [];
      if (!Array.isArray(found)) throw unusable(path, `"${list}" in it is not a list`);
      for (const item of found) {
        const { name, [kind]: fields } = Object(item) as Fields;
        if (typeof name !== 'string' || entries[list].has(name)) continue;
        entries[list].set(name, { name, path, fields: isPlainObject(fields) ? fields : {} });
      }
    }
  }
  const { fields: context } = entries.contexts.get(current) ?? {};
  const cluster = entries.clusters.get(context?.['cluster']);
  const user = entries.users.get(context?.['user']);
  if (!cluster || !user) {
    throw unusable(given, `its current context names no existing ${cluster ? 'user' : 'cluster'}`);
  }
  return { cluster: clusterIn(cluster), user: userIn(user) };
}

async function filesOf(given: string, ports: ReadingPorts): Promise<[string, Buffer][]> {
  const read = (path: string): Promise<Buffer | undefined> =>
    readFileIfAny(path, LARGEST_BYTES, ports, (why, cause) => unusable(path, why, cause));
  const paths = given.split(delimiter).filter((path) => path !== '');
  // The separator may be a part of a name.
  const whole = await read(given);
  if (whole) return [[given, whole]];
  const files: [string, Buffer][] = [];
  for (const path of paths.length > 1 ? paths : []) {
    const bytes = await read(path);
    if (bytes) files.push([path, bytes]);
  }
  if (files.length === 0) {
    throw unusable(given, paths.length > 1 ? 'none of these files exists' : 'it does not exist');
  }
  return files;
}

function parsed(bytes: Buffer, path: string, { loadYaml }: YamlReader): Fields {
  let config: unknown;
  try {
    config = loadYaml(bytes.toString('utf8'));
  } catch {
    // The parser's message quotes the text, which may be a secret.
  }
  if (typeof config !== 'object' || config === null) throw unusable(path, 'it is not a kubeconfig in YAML');
  return config as Fields;
}

function clusterIn(entry: Entry): KubeconfigCluster {
  const { name, fields } = entry;
  const { text, file, flag } = reading(entry, `cluster "${name}"`);
  const caData = text('certificate-authority-data');
  const extensions: unknown = fields['extensions'];
  const extension = (Array.isArray(extensions) ? (extensions as Fields[]) : []).find(
    (other) => (Object(other) as Fields)['name'] === 'client.authentication.k8s.io/exec',
  );
  return {
    name,
    server: text('server') ?? '',
    skipTLSVerify: flag('insecure-skip-tls-verify'),
    // As in client-go, data take precedence over a file.
    ...defined({ caData, caFile: caData === undefined ? file('certificate-authority') : undefined }),
    ...defined({ tlsServerName: text('tls-server-name'), proxyUrl: text('proxy-url') }),
    pluginConfig: extension?.['extension'],
  };
}

function userIn(entry: Entry): KubeconfigUser {
  const { name, fields, path } = entry;
  const { text, texts, file } = reading(entry, `user "${name}"`);
  const [certData, keyData] = [text('client-certificate-data'), text('client-key-data')];
  const exec = fields['exec'];
  const command = (Object(exec) as Fields)['command'];
  // Without a separator it is looked for in PATH.
  const isRelative = typeof command === 'string' && /[/\\]/.test(command);
  const groups = texts('as-groups');
  const [uid, extra] = [text('as-uid'), Object(fields['as-user-extra']) as Fields];
  return {
    name,
    ...defined({ certData, certFile: certData === undefined ? file('client-certificate') : undefined }),
    ...defined({ keyData, keyFile: keyData === undefined ? file('client-key') : undefined }),
    ...defined({ token: text('token'), username: text('username'), password: text('password') }),
    tokenFile: file('tokenFile') ?? file('token-file'),
    ...defined({ impersonateUser: text('as') }),
    impersonation: {
      ...(groups && { 'Impersonate-Group': groups }),
      ...(uid !== undefined && { 'Impersonate-Uid': uid }),
      ...Object.fromEntries(
        Object.entries(extra).map(([key, values]) => [
          `Impersonate-Extra-${encodeURIComponent(key)}`,
          [values].flat().map(String),
        ]),
      ),
    },
    authProvider: fields['auth-provider'],
    exec: isRelative ? { ...(exec as Fields), command: resolve(dirname(path), command) } : exec,
  };
}

/** Reads the fields of an entry; a path is relative to the file that names it. */
function reading({ fields, path }: Entry, of: string) {
  const wrong = (key: string, wanted: string): KubernetesError =>
    unusable(path, `"${key}" of its ${of} is not ${wanted}`);
  const text = (key: string): string | undefined => {
    const value = fields[key] ?? '';
    // A number would have lost its leading zeros.
    if (typeof value !== 'string') throw wrong(key, 'a text: put it in quotes');
    return value === '' ? undefined : value;
  };
  const texts = (key: string): string[] | undefined => {
    const value = fields[key] ?? undefined;
    const isList = Array.isArray(value) && value.every((one) => typeof one === 'string');
    if (value !== undefined && !isList) throw wrong(key, 'a list of texts');
    return value;
  };
  const file = (key: string): string | undefined => {
    const value = text(key);
    return value === undefined ? undefined : resolve(dirname(path), value);
  };
  const flag = (key: string): boolean => {
    const value = fields[key] ?? false;
    if (typeof value !== 'boolean') throw wrong(key, 'true or false');
    return value;
  };
  return { text, texts, file, flag };
}

/** Without what is undefined, because an object of client-node has no such fields. */
function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}

export function unusable(name: string, why: string, cause?: unknown): KubernetesError {
  return kubeconfigError(`Cannot use ${name}: ${why}`, cause);
}
