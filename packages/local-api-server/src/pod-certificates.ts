/** Creates the files that kubelet projects for pod certificates and trust bundles. */
import { hash } from 'node:crypto';

import type { VolumeFile } from 'resilient-watcher/testing';

import type { IssuedCertificate } from './certificate-signer.js';

/** Where a `podCertificate` source writes: one file, or two. */
export type PodCertificatePaths =
  | { readonly credentialBundlePath: string }
  | { readonly keyPath: string; readonly certificateChainPath: string };

/** kubelet's mode: the `defaultMode` of the volume, or another in a pod with `fsGroup` or its own user. */
export interface ProjectionOptions {
  /** Default 0o644. */
  readonly mode?: number | undefined;
}

/**
 * The files of a `podCertificate` source, for `KubeletVolume`: the key in PKCS#8, then the chain, the leaf first.
 *
 * ```ts
 * volume.publish({
 *   ...podCertificateFiles(signer.issue(), { credentialBundlePath: 'bundle.pem' }),
 *   'ca.pem': trustBundleFile([signer.certificate]),
 * });
 * ```
 */
export function podCertificateFiles(
  { key, chain, bundle }: IssuedCertificate,
  paths: PodCertificatePaths,
  { mode = 0o644 }: ProjectionOptions = {},
): Record<string, VolumeFile> {
  if ('credentialBundlePath' in paths) return { [paths.credentialBundlePath]: { data: bundle, mode } };
  return { [paths.keyPath]: { data: key, mode }, [paths.certificateChainPath]: { data: chain, mode } };
}

/**
 * The file of a `clusterTrustBundle` source: each certificate once, without the text around it, in an arbitrary order
 * for each `seed`. Kubelet shuffles them when a bundle of the signer changes, when it starts, and every five minutes.
 */
export function trustBundleFile(
  certificates: readonly string[],
  { mode = 0o644, seed = 0 }: ProjectionOptions & { readonly seed?: number | undefined } = {},
): VolumeFile {
  const blocks = certificates
    .flatMap((pem) => pem.split(/(?=-----BEGIN )/))
    .flatMap((part) => {
      const end = part.indexOf('-----END CERTIFICATE-----');
      return part.startsWith('-----BEGIN CERTIFICATE') && end !== -1
        ? [`${part.slice(0, end)}-----END CERTIFICATE-----\n`]
        : [];
    });
  const keyed = [...new Set(blocks)].map((block) => ({ block, place: hash('sha256', `${seed}${block}`) }));
  const data = keyed.sort((a, b) => (a.place < b.place ? -1 : 1)).map(({ block }) => block);
  return { data: data.join(''), mode };
}
