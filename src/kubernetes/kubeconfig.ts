import { X509Certificate } from 'node:crypto';

import { kubeconfigError } from './kubernetes-error.js';
import { isNonEmptyString, matching, required, resolveOptions } from '../core/options/options.js';

/** The address of a cluster, and the credentials for it. */
export interface KubeconfigOptions {
  /** The API server, `https://host:port`. */
  readonly server: string;
  /** The bearer token. */
  readonly token: string;
  /** The certificates of the cluster's authority, PEM. Default: those trusted by the system. */
  readonly caData?: string | Uint8Array | undefined;
  /** The name in the server's certificate, if it differs from the host name. */
  readonly tlsServerName?: string | undefined;
  /** The name of the cluster in the file; default `local`. */
  readonly clusterName?: string | undefined;
  /** The name of the user in the file; default that of the cluster. */
  readonly user?: string | undefined;
  /** The name of the context; default `<user>@<clusterName>`. */
  readonly contextName?: string | undefined;
  /** The namespace of requests that name none; default none. */
  readonly namespace?: string | undefined;
}

const text = matching<string | undefined>(
  undefined,
  'a non-empty string of valid Unicode',
  (value) => isNonEmptyString(value) && value.isWellFormed(),
);

/** The options of `renderKubeconfig` except the token. */
export const KUBECONFIG_OPTIONS = {
  server: required(matching<string | undefined>(undefined, 'an http(s) URL', isServer)),
  caData: matching<string | Uint8Array | undefined>(
    undefined,
    'a string or Uint8Array',
    (value) => (typeof value === 'string' && value !== '') || value instanceof Uint8Array,
  ),
  tlsServerName: text,
  clusterName: text,
  user: text,
  contextName: text,
  namespace: text,
};

/**
 * Renders a kubeconfig with one cluster, user and context, as YAML with every value quoted. It contains the token, so
 * write it with mode 0600.
 *
 * @throws {TypeError} for an unknown, missing or wrong option; the token is not shown.
 * @throws {KubernetesError} `ERR_KUBECONFIG` when `caData` is not made of certificates.
 */
export function renderKubeconfig(options: KubeconfigOptions): string {
  // Checked separately, because the message about a wrong option shows its value.
  const { token, ...rest } = options;
  if (typeof token !== 'string' || token === '') {
    throw new TypeError('renderKubeconfig: option "token" must be a non-empty string');
  }
  const resolved = resolveOptions('renderKubeconfig', rest, KUBECONFIG_OPTIONS);
  const { server, caData, tlsServerName, clusterName = 'local', namespace } = resolved;
  const { user = clusterName, contextName = `${user}@${clusterName}` } = resolved;
  const caText = caData === undefined ? undefined : checkCertificates(caData, 'option "caData"');
  return [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    `- name: ${quote(clusterName)}`,
    '  cluster:',
    `    server: ${quote(server)}`,
    ...(caText === undefined
      ? []
      : [`    certificate-authority-data: ${Buffer.from(caText).toString('base64')}`]),
    ...(tlsServerName === undefined ? [] : [`    tls-server-name: ${quote(tlsServerName)}`]),
    'users:',
    `- name: ${quote(user)}`,
    '  user:',
    `    token: ${quote(token)}`,
    'contexts:',
    `- name: ${quote(contextName)}`,
    '  context:',
    `    cluster: ${quote(clusterName)}`,
    `    user: ${quote(user)}`,
    ...(namespace === undefined ? [] : [`    namespace: ${quote(namespace)}`]),
    `current-context: ${quote(contextName)}`,
    '',
  ].join('\n');
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The text of a bundle of certificates. An incomplete bundle is refused, because a client that trusts only some of the
 * authorities may be locked out.
 * @throws {KubernetesError} `ERR_KUBECONFIG`.
 */
export function checkCertificates(pem: string | Uint8Array, where: string): string {
  const bundle = typeof pem === 'string' ? pem : Buffer.from(pem).toString('utf8');
  const certificates = bundle.match(CERTIFICATE) ?? [];
  const begun = bundle.match(/-----BEGIN /g) ?? [];
  if (certificates.length === 0 || certificates.length !== begun.length) {
    throw kubeconfigError(
      `The CA in ${where} is not a bundle of PEM certificates (${certificates.length} found in ${bundle.length} characters)`,
    );
  }
  certificates.forEach((certificate, index) => {
    try {
      new X509Certificate(certificate);
    } catch (cause) {
      throw kubeconfigError(`Certificate ${index + 1} of the CA in ${where} cannot be parsed`, cause);
    }
  });
  return bundle;
}

function isServer(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return (protocol === 'https:' || protocol === 'http:') && username === '' && password === '';
}

/** A JSON string in which what YAML does not count as printable is escaped, too. */
function quote(value: string): string {
  return JSON.stringify(value).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
