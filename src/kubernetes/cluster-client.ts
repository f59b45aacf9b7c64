/**
 * Requests and watches, with the credentials of a pod or of a kubeconfig. Not the `Watch` of client-node: that cannot
 * ask for metadata only, reads lines of any length, and would have to be installed in every pod.
 */
import { Agent } from 'node:https';

import { withDeadline } from '../core/scheduling/deadline.js';
import { resolveOptions } from '../core/options/options.js';
import { redactError, ResilientError } from '../core/errors/resilient-error.js';
import { redact } from '../core/options/redaction.js';
import { otherFailure, statusOf } from './api-failure.js';
import { ApiFailure, linesOfApi, requestApi, type ApiAccess, type ApiRequest } from './api-request.js';
import { CLUSTER_OPTIONS, clusterOf, type ClusterClientOptions } from './cluster-access.js';
import { KubernetesError } from './kubernetes-error.js';
import { ownCredentials, type RequestCredentials } from './request-credentials.js';

/** One request to the API server. */
export type ClusterRequest = ApiRequest;

/**
 * What `PodSync` asks of an API server. Both methods reject with the reason of the signal when it aborts, and else with a
 * `KubernetesError`. An answer that cannot be used has its `status`, and the `code` `ERR_API_ANSWER`, or `ERR_API_TOO_LONG`
 * for more than 4 MiB. Without an answer it is `ERR_CLUSTER_REQUEST`; `cause` says why. A kubeconfig, token or package that
 * cannot be used rejects with `ERR_KUBECONFIG`, a `TokenError` or a `PackageError`.
 */
export interface ClusterClient {
  /** Resolves to the parsed answer; rejects for any status except 2xx. */
  request(request: ClusterRequest): Promise<unknown>;
  /** The lines of an answer that does not end, such as a watch, as they arrive. */
  lines(request: ClusterRequest): AsyncIterable<string>;
}

/** An idle connection is closed after this time, ms: earlier than the API server does it. */
const IDLE_MS = 30_000;

/** Reading credentials, or running a plugin that asks a cloud for them, takes at most this time, ms. */
const CREDENTIALS_TIMEOUT_MS = 30_000;

/**
 * Creates a client of one cluster. Requests share connections; each watch has its own. No redirect is followed, at most
 * 4 MiB of an answer, or of a line of a watch, are read. A plugin of the kubeconfig has 30 s, and what it gives is used
 * until it expires or is refused.
 * @throws {TypeError} for a wrong option.
 */
export function clusterClient(options?: ClusterClientOptions): ClusterClient {
  const owner = 'clusterClient';
  const cluster = clusterOf(owner, resolveOptions(owner, options, CLUSTER_OPTIONS));
  const { clock } = cluster.ports;
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS, scheduling: 'lifo' });
  const inTime = <T>(work: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> =>
    withDeadline(work, {
      clock,
      timeoutMs: CREDENTIALS_TIMEOUT_MS,
      signal,
      late: () => new Error(`the credentials took over ${CREDENTIALS_TIMEOUT_MS / 1_000} s`),
    });
  const credentialsIn = (signal: AbortSignal): Promise<RequestCredentials> =>
    inTime(async (until) => ownCredentials(await cluster.access(), cluster.ports, until), signal);
  /** Calls the API server, and converts what it fails with. */
  async function* answersOf<T>(
    request: ClusterRequest,
    call: (access: ApiAccess) => AsyncIterable<T>,
  ): AsyncGenerator<T, void> {
    const secrets: string[] = [];
    let credentials: RequestCredentials | undefined;
    try {
      credentials = await credentialsIn(request.signal);
      const { access } = credentials;
      const authenticate: ApiAccess['authenticate'] = (options) =>
        inTime(() => access.authenticate(options), request.signal);
      yield* call({ ...access, secrets, authenticate });
    } catch (error) {
      if (statusOf(error) === 401) credentials?.forget();
      throw failureOf(error, request, secrets);
    }
  }
  return {
    async request(request) {
      const answers = answersOf(request, async function* (access) {
        yield await requestApi(access, request, agent);
      });
      return (await answers.next()).value;
    },
    lines: (request) => answersOf(request, (access) => linesOfApi(access, request)),
  };
}

/** The failure as an error of the library. The message of a server may quote what it was sent. */
function failureOf(error: unknown, request: ClusterRequest, secrets: readonly string[]): unknown {
  const { method, path, signal } = request;
  if (signal.aborted) return signal.reason;
  if (error instanceof ApiFailure) {
    const { status, code, headers, body } = error;
    return new ApiFailure(status, redact(error.message, secrets), { code, headers, body });
  }
  const cause = redactError(error, secrets);
  if (cause instanceof ResilientError) return cause;
  const [target] = path.split('?');
  const message = `Cannot ${method} ${target}: ${otherFailure(error).reason}`;
  return new KubernetesError('ERR_CLUSTER_REQUEST', redact(message, secrets), { cause });
}
