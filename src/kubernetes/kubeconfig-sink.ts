import { atomicWriteFile, type AtomicWriteFileOptions } from '../write/atomic-write-file.js';
import { checkPath, matching, resolveOptions } from '../core/options.js';
import { nodeFileSystem } from '../core/file-system.js';
import type { TokenSink } from '../token/delivery.js';
import { readCertificates } from './cluster-access.js';
import { checkCertificates, KUBECONFIG_OPTIONS, renderKubeconfig, requireServer } from './kubeconfig.js';
import type { KubeconfigOptions } from './kubeconfig.js';

/** Options of `kubeconfigSink`: those of `renderKubeconfig` and of `atomicWriteFile`, and where it all is. */
export interface KubeconfigSinkOptions
  extends Omit<KubeconfigOptions, 'token'>, Omit<AtomicWriteFileOptions, 'signal' | 'coalesce'> {
  /** The file to write. */
  readonly path: string;
  /** Instead of `caData`: a file of PEM certificates, read anew at each delivery. */
  readonly caFile?: string | undefined;
}

/**
 * A sink that writes each token into a kubeconfig of its own, such as that of a CNI plugin. Whoever reads it finds
 * the old file or the new one and never a part. Its mode is 0600 unless you say otherwise. When the CA cannot be
 * read, or is not one, nothing is written and the delivery is tried again.
 *
 * @throws {TypeError} for an unknown, missing or wrong option.
 * @throws {KubernetesError} `ERR_KUBECONFIG_CA` when `caData` is not made of certificates.
 */
export function kubeconfigSink(options: KubeconfigSinkOptions): TokenSink {
  const owner = 'kubeconfigSink';
  const { path, caFile, server, caData, tlsServerName, clusterName, user, contextName, namespace, ...write } =
    options;
  checkPath(owner, 'option "path"', path);
  const names = resolveOptions(
    owner,
    { caFile, server, caData, tlsServerName, clusterName, user, contextName, namespace },
    SINK_OPTIONS,
  );
  requireServer(owner, names.server);
  if (caData !== undefined && caFile !== undefined) {
    throw new TypeError(`${owner}: give "caData" or "caFile", not both`);
  }
  if (caData !== undefined) checkCertificates(caData, 'option "caData"');
  const { caFile: _file, ...rest } = names;
  const sink: TokenSink = async (token, { signal }) => {
    const current =
      caFile === undefined ? caData : await readCertificates(caFile, write.fs ?? nodeFileSystem);
    const text = renderKubeconfig({ ...rest, caData: current, token: token.value });
    await atomicWriteFile(path, text, { mode: 0o600, ...write, signal });
  };
  // What `status()` and the events call it.
  return Object.defineProperty(sink, 'name', { value: path });
}

const SINK_OPTIONS = {
  ...KUBECONFIG_OPTIONS,
  caFile: matching<string | undefined>(
    undefined,
    'a path',
    (value) => typeof value === 'string' && value !== '' && !value.includes('\0'),
  ),
};
