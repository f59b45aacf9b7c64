import { readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';

import { nodeFileSystem } from '../core/ports/builtins.js';
import type { AtomicWriteFileOptions } from '../write/write-options.js';
import { errnoOf } from '../core/errors/errno.js';
import { toldPath } from '../core/ports/platform-path.js';
import { checkPath, flag, PATH_OPTION, required, resolveOptions } from '../core/options/options.js';
import { processState } from '../core/process-state.js';
import { systemRandom } from '../core/ports/random.js';
import { SerialQueue } from '../core/scheduling/serial-queue.js';
import { readFileIfAny } from '../fs/read-file.js';
import type { TokenSink } from '../token/delivery.js';
import { fileSink, SINK_OPTIONS } from '../token/file-sink.js';
import type { ServiceAccountToken } from '../token/token.js';
import { readCertificates } from './cluster-access.js';
import { checkCertificates, KUBECONFIG_OPTIONS, renderKubeconfig } from './kubeconfig.js';
import type { KubeconfigOptions } from './kubeconfig.js';
import { kubeconfigError } from './kubernetes-error.js';
import { LARGEST_BYTES } from './kubeconfig-file.js';
import { mergeKubeconfig } from './merge-kubeconfig.js';

/** Options of `kubeconfigSink`, in addition to those of `renderKubeconfig` and `atomicWriteFile`. */
export interface KubeconfigSinkOptions
  extends Omit<KubeconfigOptions, 'token'>, Omit<AtomicWriteFileOptions, 'signal'> {
  /** The file to write. */
  readonly path: string | URL;
  /** Instead of `caData`: a file of PEM certificates, read at each delivery. */
  readonly caFile?: string | URL | undefined;
  /**
   * Whether an existing kubeconfig keeps its other clusters, users and contexts, its current context and its comments.
   * If it cannot be parsed, nothing is written and the delivery is retried. A change that another process makes between
   * the reading and the writing is lost. Default false: the file is replaced.
   */
  readonly merge?: boolean | undefined;
}

const OPTIONS = {
  path: required(PATH_OPTION),
  ...KUBECONFIG_OPTIONS,
  caFile: PATH_OPTION,
  merge: flag(false),
  ...SINK_OPTIONS,
};

/**
 * Creates a sink that writes each token into a kubeconfig, for example for a CNI plugin. Readers see the old file or
 * the new one, never a partial one. The default mode is 0600. If the CA cannot be read or is invalid, nothing is
 * written and the delivery is retried.
 *
 * @throws {TypeError} for an unknown, missing or wrong option.
 * @throws {KubernetesError} `ERR_KUBECONFIG` when `caData`, or an existing `caFile`, does not consist of certificates.
 */
export function kubeconfigSink(options: KubeconfigSinkOptions): TokenSink {
  const owner = 'kubeconfigSink';
  const given = resolveOptions(owner, options, OPTIONS);
  const path = toldPath(checkPath(owner, 'option "path"', given.path));
  const caFile =
    given.caFile === undefined ? undefined : toldPath(checkPath(owner, 'option "caFile"', given.caFile));
  const { server, caData, tlsServerName, clusterName, user, contextName, namespace, merge, ...rest } = given;
  const names = { server, tlsServerName, clusterName, user, contextName, namespace };
  const { path: _path, caFile: _caFile, ...write } = rest;
  if (caData !== undefined && caFile !== undefined) {
    throw new TypeError(`${owner}: give "caData" or "caFile", not both`);
  }
  if (caData !== undefined) checkCertificates(caData, 'option "caData"');
  if (caFile !== undefined) checkCaFile(caFile);
  const ports = { fs: nodeFileSystem, clock: write.clock, random: systemRandom };
  const render = async (token: ServiceAccountToken): Promise<string> => {
    const current = caFile === undefined ? caData : await readCertificates(caFile, ports);
    const own = renderKubeconfig({ ...names, caData: current, token: token.value });
    if (!merge) return own;
    const existing = await readFileIfAny(path, LARGEST_BYTES, ports, (why, cause) =>
      kubeconfigError(`Nothing can be added to the kubeconfig ${path}: ${why}`, cause),
    );
    return mergeKubeconfig(existing?.toString('utf8') ?? '', own, path);
  };
  const sink = fileSink(path, { ...write, render });
  if (!merge) return sink;
  const merging: TokenSink = async (token, options) =>
    merges().run(await placeOf(path), async () => sink(token, options));
  return Object.defineProperty(merging, 'name', { value: sink.name });
}

/** Which file a path leads to, whatever the path: its name, and its directory. */
async function placeOf(path: string): Promise<string> {
  const file = await destinationOf(resolve(toldPath(path)));
  const directory = await stat(dirname(file), { bigint: true }).catch(() => undefined);
  return directory ? `${directory.dev}:${directory.ino}/${basename(file)}` : file;
}

/** Where a path leads, also if nothing is there yet. */
async function destinationOf(path: string, links = 0): Promise<string> {
  const found = await realpath(path).catch(() => undefined);
  if (found !== undefined || dirname(path) === path) return found ?? path;
  const directory = await destinationOf(dirname(path), links);
  const target = links < MOST_LINKS ? await readlink(path).catch(() => undefined) : undefined;
  if (target === undefined) return join(directory, basename(path));
  return destinationOf(resolve(directory, target), links + 1);
}

/** As many as Linux follows. */
const MOST_LINKS = 40;

/** Sinks of one file must not overwrite each other's entries. */
const merges = processState('merges', () => new SerialQueue());

/**
 * At the start, because a delivery that fails is only an event. A file that does not exist may follow.
 * @throws {KubernetesError} `ERR_KUBECONFIG`.
 */
function checkCaFile(path: string): void {
  const bytes = bytesOfCa(path);
  if (bytes) checkCertificates(bytes, path);
}

function bytesOfCa(path: string): Buffer | undefined {
  try {
    const file = nodeFileSystem.statSync(path);
    if (!file.isFile()) throw new Error('it is not a file');
    // A larger one is refused when it is delivered.
    return file.size <= LARGEST_BYTES ? nodeFileSystem.readFileSync(path) : undefined;
  } catch (cause) {
    if (errnoOf(cause) === 'ENOENT') return undefined;
    throw kubeconfigError(`Cannot read the CA in ${path}: ${(cause as Error).message}`, cause);
  }
}
