import { durationText, isoTime, type Clock } from '../core/ports/clock.js';
import type { TokenClaims, TokenCredential } from '../core/ports/token-client.js';
import { readToken } from '../token/read-token.js';
import { tokenFromText } from '../token/token.js';
import type { ApiAccess } from './api-request.js';
import type { ClusterAccess, ClusterPorts } from './cluster-access.js';

/** When a projected token authenticates requests instead of a kubeconfig's own credentials. */
export type CredentialUse = 'auto' | 'always' | 'never';

/** One way to authenticate a request. */
export interface RequestCredentials {
  readonly access: ApiAccess;
  /** A description for the error if they are refused; undefined if only client-node knows the credentials. */
  readonly description: string | undefined;
  /** The token, if it is known. */
  readonly token: string | undefined;
  /** The server has refused them: they are not kept for the next request. */
  readonly forget: () => void;
}

interface CredentialContext {
  readonly cluster: ClusterAccess;
  /** The newest known projected token. */
  readonly projected: TokenCredential | undefined;
  readonly use: CredentialUse;
  readonly ports: ClusterPorts;
}

/**
 * Chooses the credentials to try in turn as long as the server answers 401.
 *
 * | the kubeconfig                                                     | first           | then            |
 * |--------------------------------------------------------------------|-----------------|-----------------|
 * | is for the pod's own API server, and has a token file              | projected token | its token file  |
 * | is, and has a token of the same issuer, for one of its audiences   | its token       | projected token |
 * | has others, or is for another API server, whatever its issuer says | its credentials | nothing         |
 *
 * Most clusters have the same issuer, https://kubernetes.default.svc.cluster.local, so a token does not tell whose it is.
 * If the projected token and the kubeconfig's own token are the same, it is tried only once.
 * @throws {TokenError} `ERR_TOKEN_FILE` or `ERR_TOKEN_MALFORMED` when the user's token file cannot be used.
 * @throws {KubernetesError} `ERR_EXEC_PLUGIN` when its plugin gives none.
 */
export async function* credentialsOf(
  context: CredentialContext,
  signal: AbortSignal,
): AsyncGenerator<RequestCredentials, void> {
  const { cluster, projected, use } = context;
  const { tokenFile, isPods } = cluster;
  const isOwn = tokenFile !== undefined && (isPods || tokenFile === projected?.path);
  const isFirst = projected !== undefined && use !== 'never' && (use === 'always' || isOwn);
  if (isFirst) yield projectedCredentials(context, projected);
  const own = await ownCredentials(cluster, context.ports, signal);
  if (!isFirst || own.token !== projected.value) yield own;
  const isNext = isPods && use === 'auto' && !isFirst;
  if (isNext && projected && own.token !== projected.value && canBeMeant(own.token, projected.value))
    yield projectedCredentials(context, projected);
}

function projectedCredentials(
  { cluster, ports }: CredentialContext,
  { path, value, seenAt }: TokenCredential,
): RequestCredentials {
  const description = describeToken(path, value, ports.clock, seenAt);
  return { access: cluster.bearer(value), token: value, description, forget: () => {} };
}

/**
 * The credentials that come with the cluster.
 * @param signal ends a plugin.
 * @throws {TokenError} `ERR_TOKEN_FILE` or `ERR_TOKEN_MALFORMED` when the user's token file cannot be used.
 * @throws {KubernetesError} `ERR_EXEC_PLUGIN` when its plugin gives none.
 */
export async function ownCredentials(
  cluster: ClusterAccess,
  ports: ClusterPorts,
  signal: AbortSignal,
): Promise<RequestCredentials> {
  const { tokenFile, token, plugin } = cluster;
  const { plugins } = ports;
  if (tokenFile !== undefined) {
    // As in client-go, the file takes precedence, unless it cannot be used.
    const read = await readToken(tokenFile, ports, 'opaque').catch((error: unknown) => {
      if (token === undefined) throw error;
    });
    if (read) {
      const description = describeToken(tokenFile, read.value, ports.clock, undefined);
      return { access: cluster.own({ token: read.value }), token: read.value, description, forget: () => {} };
    }
  }
  if (!plugin) return { access: cluster.own(), description: undefined, token, forget: () => {} };
  const credential = await plugins.get(plugin, signal);
  return {
    access: cluster.own(credential),
    token: credential.token,
    description: `the credentials of the plugin "${String(plugin.command)}"`,
    forget: () => plugins.forget(credential),
  };
}

/** Whether who issued the first token may have issued the second one for the same server. */
function canBeMeant(own: string | undefined, projected: string): boolean {
  const [{ iss, aud }, other] = [claimsOf(own), claimsOf(projected)];
  const [audiences, others] = [[aud ?? []].flat(), [other.aud ?? []].flat()];
  const isForSame =
    audiences.length === 0 || others.length === 0 || audiences.some((one) => others.includes(one));
  return iss !== undefined && iss === other.iss && isForSame;
}

/** Those of a token that is no JWT are empty. */
function claimsOf(token: string | undefined): TokenClaims {
  try {
    return token === undefined ? {} : tokenFromText(token).claims;
  } catch {
    return {};
  }
}

/** "the token in /path (issued 49 min ago, in the file for 2 min)". */
function describeToken(path: string, value: string, clock: Clock, seenAt: number | undefined): string {
  const now = clock.now();
  const ages = seenAt === undefined ? [] : [`seen there ${durationText(now - seenAt)} ago`];
  try {
    const { issuedAt, notAfter } = tokenFromText(value);
    if (notAfter <= now) ages.unshift(`expired at ${isoTime(notAfter)}`);
    if (issuedAt !== undefined) ages.unshift(`issued ${durationText(now - issuedAt)} ago`);
  } catch {
    // Not a JWT: its age is unknown.
  }
  return ages.length === 0 ? `the token in ${path}` : `the token in ${path} (${ages.join(', ')})`;
}
