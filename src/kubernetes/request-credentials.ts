import { durationText, isoTime, type Clock } from '../core/ports/clock.js';
import type { TokenCredential } from '../core/ports/token-client.js';
import type { ReadingPorts } from '../fs/stable-read.js';
import { readToken } from '../token/read-token.js';
import { tokenFromText } from '../token/token.js';
import type { ApiAccess } from './api-request.js';
import type { ClusterAccess } from './cluster-access.js';

/** When a projected token authenticates requests instead of a kubeconfig's own credentials. */
export type CredentialUse = 'auto' | 'always' | 'never';

/** One way to authenticate a request. */
interface RequestCredentials {
  readonly access: ApiAccess;
  /** A description for the error if they are refused; undefined if only client-node knows the credentials. */
  readonly description: string | undefined;
  /** The token, which must not be shown. */
  readonly secret: string | undefined;
}

interface CredentialContext {
  readonly cluster: ClusterAccess;
  /** The newest known projected token. */
  readonly projected: TokenCredential | undefined;
  readonly use: CredentialUse;
  readonly ports: ReadingPorts;
}

/**
 * Chooses the credentials to try in turn as long as the server answers 401.
 *
 * | the kubeconfig's user                   | first           | then            |
 * |-----------------------------------------|-----------------|-----------------|
 * | has a token file, as in a pod           | projected token | its token file  |
 * | has a token from the same issuer        | its token       | projected token |
 * | has others, perhaps for another cluster | its credentials | nothing         |
 *
 * If the projected token and the kubeconfig's own token are the same, it is tried only once.
 * @throws {TokenError} `ERR_TOKEN_FILE` or `ERR_TOKEN_MALFORMED` when the user's token file cannot be used.
 */
export async function* credentialsOf(context: CredentialContext): AsyncGenerator<RequestCredentials, void> {
  const { cluster, projected, use } = context;
  if (!projected || use === 'never') {
    yield await ownCredentials(context);
    return;
  }
  const isFirst = use === 'always' || cluster.tokenFile !== undefined;
  if (isFirst) yield projectedCredentials(context, projected);
  const own = await ownCredentials(context);
  if (own.secret !== projected.value) yield own;
  if (!isFirst && isSameIssuer(own.secret, projected.value)) yield projectedCredentials(context, projected);
}

function projectedCredentials(
  { cluster, ports }: CredentialContext,
  { path, value, seenAt }: TokenCredential,
): RequestCredentials {
  const description = describeToken(path, value, ports.clock, seenAt);
  return { access: cluster.bearer(value), secret: value, description };
}

/**
 * The credentials that come with the cluster.
 * @throws {TokenError} `ERR_TOKEN_FILE` or `ERR_TOKEN_MALFORMED` when the user's token file cannot be used.
 */
export async function ownCredentials({
  cluster,
  ports,
}: Pick<CredentialContext, 'cluster' | 'ports'>): Promise<RequestCredentials> {
  const { tokenFile, token } = cluster;
  if (tokenFile === undefined) return { access: cluster.own(), description: undefined, secret: token };
  const { value } = await readToken(tokenFile, ports, 'opaque');
  const description = describeToken(tokenFile, value, ports.clock, undefined);
  return { access: cluster.own(value), secret: value, description };
}

function isSameIssuer(own: string | undefined, projected: string): boolean {
  const issuer = issuedBy(projected);
  return own !== undefined && issuer !== undefined && issuedBy(own) === issuer;
}

function issuedBy(token: string): unknown {
  try {
    return tokenFromText(token).claims.iss;
  } catch {
    return undefined;
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
