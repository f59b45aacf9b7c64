import type { AtomicWriteFileOptions } from '../write/write-options.js';
import { checkPath, describe, resolveOptions } from '../core/options.js';
import { systemClock } from '../core/clock.js';
import nodeFileSystem from 'node:fs';
import { systemRandom } from '../core/random.js';
import type { TokenSink } from '../token/delivery.js';
import { fileSink } from '../token/file-sink.js';
import type { ServiceAccountToken } from '../token/token.js';
import { readCertificates } from './cluster-access.js';
import { checkCertificates, KUBECONFIG_OPTIONS, renderKubeconfig } from './kubeconfig.js';
import type { KubeconfigOptions } from './kubeconfig.js';

/** Options of `kubeconfigSink`, in addition to those of `renderKubeconfig` and `atomicWriteFile`. */
export interface KubeconfigSinkOptions
  extends Omit<KubeconfigOptions, 'token'>, Omit<AtomicWriteFileOptions, 'signal' | 'coalesce'> {
  /** The file to write. */
  readonly path: string | URL;
  /** Instead of `caData`: a file of PEM certificates, read at each delivery. */
  readonly caFile?: string | URL | undefined;
}

/**
 * Creates a sink that writes each token into a kubeconfig, for example for a CNI plugin. Readers see the old file or
 * the new one, never a partial one. The default mode is 0600. If the CA cannot be read or is invalid, nothing is
 * written and the delivery is retried.
 *
 * @throws {TypeError} for an unknown, missing or wrong option.
 * @throws {KubernetesError} `ERR_KUBECONFIG` when `caData` does not consist of certificates.
 */
export function kubeconfigSink(options: KubeconfigSinkOptions): TokenSink {
  const owner = 'kubeconfigSink';
  if (typeof options !== 'object' || (options as unknown) === null) {
    throw new TypeError(`${owner}: options must be an object with path and server, got ${describe(options)}`);
  }
  const {
    path: target,
    server,
    caData,
    tlsServerName,
    clusterName,
    user,
    contextName,
    namespace,
    ...rest
  } = options;
  const { caFile: authority, ...write } = rest;
  const path = checkPath(owner, 'option "path"', target);
  const caFile = authority === undefined ? undefined : checkPath(owner, 'option "caFile"', authority);
  const names = resolveOptions(
    owner,
    { server, caData, tlsServerName, clusterName, user, contextName, namespace },
    KUBECONFIG_OPTIONS,
  );
  if (caData !== undefined && caFile !== undefined) {
    throw new TypeError(`${owner}: give "caData" or "caFile", not both`);
  }
  if (caData !== undefined) checkCertificates(caData, 'option "caData"');
  const ports = { fs: nodeFileSystem, clock: write.clock ?? systemClock, random: systemRandom };
  const render = async (token: ServiceAccountToken): Promise<string> => {
    const current = caFile === undefined ? caData : await readCertificates(caFile, ports);
    return renderKubeconfig({ ...names, caData: current, token: token.value });
  };
  return fileSink(path, { ...write, render });
}
