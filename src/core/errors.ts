/**
 * The errors of the library, one class for each thing a caller would do next. `code` is stable and may be
 * switched on; messages may change. Wrong arguments are plain `TypeError` and `RangeError`.
 */
import { redactError, ResilientError } from './resilient-error.js';

export { ResilientError };

/** Why a target cannot be read although something stands at its path. */
export type TargetErrorCode =
  /** Nothing is there; only where that is no state but a failure, as in `readVolume`. */
  | 'ERR_TARGET_MISSING'
  | 'ERR_TARGET_LOOP'
  | 'ERR_TARGET_ACCESS'
  | 'ERR_TARGET_NOT_DIRECTORY'
  | 'ERR_TARGET_NOT_FILE'
  /** `..data` leads out of the volume, which kubelet's layout never does. */
  | 'ERR_TARGET_LAYOUT'
  /** It exceeds `maxFiles`, `maxContentBytes` or `maxTotalBytes` (`AtomicVolume.read()`). */
  | 'ERR_TARGET_TOO_LARGE'
  | 'ERR_TARGET_IO'
  /** It was not as expected in time; see `waitFor`. */
  | 'ERR_TARGET_TIMEOUT';

/** The target is there but cannot be read. It may heal by itself; watching goes on. */
export class TargetError extends ResilientError {
  override readonly name = 'TargetError';
  readonly code: TargetErrorCode;
  /** The path on the way at which it failed. */
  readonly path: string;

  constructor(code: TargetErrorCode, path: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.path = path;
  }
}

/** Why a backend cannot give hints. */
export type BackendErrorCode =
  | 'ERR_BACKEND_INSTANCE_LIMIT'
  | 'ERR_BACKEND_WATCH_LIMIT'
  | 'ERR_BACKEND_UNAVAILABLE'
  /** The target is on a file system without events (NFS, FUSE, …); it is polled as long as it is there. */
  | 'ERR_BACKEND_NO_EVENTS'
  | 'ERR_BACKEND_DOWN'
  /** It could watch this, but another one does it better. No failure while there is another one. */
  | 'ERR_BACKEND_UNSUITED';

/** Native watching cannot be had, or has ended. The watcher polls and keeps trying to come back. */
export class BackendError extends ResilientError {
  override readonly name = 'BackendError';
  readonly code: BackendErrorCode;
  /** The backend's name. */
  readonly backend: string;
  /** The kernel setting to raise, for the two inotify limits. */
  readonly sysctl: string | undefined;

  constructor(
    code: BackendErrorCode,
    backend: string,
    message: string,
    options?: ErrorOptions & { sysctl?: string },
  ) {
    super(message, options);
    this.code = code;
    this.backend = backend;
    this.sysctl = options?.sysctl;
  }
}

/** What went wrong with a token. */
export type TokenErrorCode =
  /** The client could not get one, and none of the reasons below is why; `cause` is what it threw. */
  | 'ERR_TOKEN_REQUEST'
  /** The API server was not reached: refused, reset, no such host, or a certificate that is not trusted. */
  | 'ERR_TOKEN_NETWORK'
  /** The API server does not know who asks (401): the credentials of the client are over, or not valid yet. */
  | 'ERR_TOKEN_UNAUTHORIZED'
  /** Who asks may not create tokens (403): RBAC has to be changed. */
  | 'ERR_TOKEN_FORBIDDEN'
  /** There is no such ServiceAccount, or the object to bind to is gone (404). */
  | 'ERR_TOKEN_NOT_FOUND'
  /** The API server does not take such a request (400, 409, 422). */
  | 'ERR_TOKEN_INVALID'
  /** The API server asks to wait (429, or 503 with `Retry-After`). */
  | 'ERR_TOKEN_THROTTLED'
  /** The client gave no answer in time. */
  | 'ERR_TOKEN_TIMEOUT'
  /** The API server has no TokenRequest API. A `TokenClient` throws it; the projected file is used instead. */
  | 'ERR_TOKEN_UNSUPPORTED'
  /** What came is not a token, or its dates make no sense. */
  | 'ERR_TOKEN_MALFORMED'
  /** It is over; `cause` is why there is no newer one. */
  | 'ERR_TOKEN_EXPIRED'
  /** There was none yet; `cause` is why. */
  | 'ERR_TOKEN_UNAVAILABLE'
  /** The client cannot work, whatever the server says: a package it needs is missing. Not tried again. */
  | 'ERR_TOKEN_CLIENT'
  /** The token file cannot be read. */
  | 'ERR_TOKEN_FILE'
  /** A sink failed; `cause` is what it threw. */
  | 'ERR_TOKEN_SINK';

/** No good token, or it could not be delivered. It may heal by itself; refreshing goes on. */
export class TokenError extends ResilientError {
  override readonly name = 'TokenError';
  readonly code: TokenErrorCode;
  /** How long the server asked to be left alone (`Retry-After`), ms. */
  readonly retryAfterMs: number | undefined;

  constructor(
    code: TokenErrorCode,
    message: string,
    options?: ErrorOptions & { readonly retryAfterMs?: number | undefined },
  ) {
    super(message, options);
    this.code = code;
    this.retryAfterMs = options?.retryAfterMs;
  }
}

/** What was given cannot be used. */
export type KubernetesErrorCode =
  /** A kubeconfig cannot be read, or lacks what it takes to reach a cluster. */
  | 'ERR_KUBECONFIG'
  /** `@kubernetes/client-node` is not installed, or its version is not supported. */
  | 'ERR_KUBERNETES_CLIENT'
  /** The certificates of the cluster's authority cannot be read. */
  | 'ERR_KUBECONFIG_CA'
  /** The tokens that kubelet sent cannot be read. */
  | 'ERR_CSI_TOKENS'
  /** kubelet sent no token for this audience: the CSIDriver has to be changed. */
  | 'ERR_CSI_AUDIENCE'
  /** The target path is not a directory to publish in. */
  | 'ERR_CSI_TARGET'
  /** What a volume is to hold could not be produced; `cause` is what was thrown. */
  | 'ERR_CSI_PRODUCE';

/** What the cluster, kubelet or the configuration gave cannot be used. What was good before is kept. */
export class KubernetesError extends ResilientError {
  override readonly name = 'KubernetesError';
  readonly code: KubernetesErrorCode;

  constructor(code: KubernetesErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Why something could not be written. */
export type WriteErrorCode =
  | 'ERR_WRITE_NO_SPACE'
  | 'ERR_WRITE_READ_ONLY'
  | 'ERR_WRITE_ACCESS'
  | 'ERR_WRITE_NO_DIRECTORY'
  | 'ERR_WRITE_NOT_FILE'
  | 'ERR_WRITE_MOUNTED'
  | 'ERR_WRITE_CROSS_DEVICE'
  | 'ERR_WRITE_SYMLINK'
  /** Another user planted a link or a file in a sticky directory that others can write to. */
  | 'ERR_WRITE_UNTRUSTED'
  /** What was being written was moved or replaced by another process before it was published. */
  | 'ERR_WRITE_CONFLICT'
  | 'ERR_WRITE_SOURCE'
  | 'ERR_WRITE_IO';

/** At which step of an atomic write it happened, in the order they are taken. */
export type WriteStep =
  | 'open-directory'
  | 'resolve'
  | 'compare'
  | 'create-directory'
  | 'create'
  | 'read-source'
  | 'write'
  | 'verify'
  | 'chown'
  | 'chmod'
  | 'sync'
  | 'close'
  | 'rename'
  | 'sync-directory'
  | 'link'
  | 'remove';

/** A file or a volume could not be written. Unless `published` is true, readers see what was there before. */
export class WriteError extends ResilientError {
  override readonly name = 'WriteError';
  readonly code: WriteErrorCode;
  /** What was to be written; absolute. */
  readonly path: string;
  readonly step: WriteStep;
  /** Whether readers see the new content: it is in place, but not everything after that succeeded. */
  readonly published: boolean;

  constructor(
    code: WriteErrorCode,
    message: string,
    details: { readonly path: string; readonly step: WriteStep; readonly published: boolean },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.code = code;
    this.path = details.path;
    this.step = details.step;
    this.published = details.published;
  }
}

/** What is wrong with a configuration. */
export type ConfigErrorCode =
  /** `load()` found no configuration it may use; `problems` says all that is wrong. */
  | 'ERR_CONFIG_INVALID'
  /** There is nothing at the path, and it is not optional. */
  | 'ERR_CONFIG_MISSING'
  /** A source cannot be read. */
  | 'ERR_CONFIG_UNREADABLE'
  /** There are more bytes than `maxBytes`. */
  | 'ERR_CONFIG_TOO_LARGE'
  /** The bytes are not what the parser reads. */
  | 'ERR_CONFIG_PARSE'
  /** The values are refused: keys that would change what objects are, or no map at the top. */
  | 'ERR_CONFIG_REFUSED'
  /** `validate` refuses the merged values. */
  | 'ERR_CONFIG_SCHEMA'
  /** A parser or `validate` gave no answer in time. */
  | 'ERR_CONFIG_TIMEOUT'
  /** An optional package is needed and not installed. */
  | 'ERR_CONFIG_PACKAGE'
  /** The provider is already being watched. */
  | 'ERR_CONFIG_WATCHED'
  /** The file is mounted in a way that never shows an update. */
  | 'ERR_CONFIG_FROZEN';

/** One thing that is wrong with a configuration. Holds no value of it, only names and places. */
export interface ConfigProblem {
  readonly code: ConfigErrorCode;
  /** The name of the source: a path, `environment APP_*`, `values`, or `validate` when no source gave the value. */
  readonly source: string;
  /** Where in the values, from the top. */
  readonly path?: readonly string[] | undefined;
  /** Where in the text, from 1. */
  readonly line?: number | undefined;
  /** From 1. */
  readonly column?: number | undefined;
  /** What is wrong; values are left out. */
  readonly message: string;
}

/** A configuration cannot be used. Neither its message nor its problems quote a value of the configuration. */
export class ConfigError extends ResilientError {
  override readonly name = 'ConfigError';
  readonly code: ConfigErrorCode;
  /** All that is wrong, in the order of the sources. */
  readonly problems: readonly ConfigProblem[];

  constructor(
    code: ConfigErrorCode,
    message: string,
    options?: ErrorOptions & { readonly problems?: readonly ConfigProblem[] },
  ) {
    super(message, options);
    this.code = code;
    this.problems = options?.problems ?? [];
  }
}

/** Why the files of a secret do not hold a usable value. */
export type SecretErrorCode =
  /** The file, or a key of the directory, does not exist. */
  | 'ERR_SECRET_MISSING'
  | 'ERR_SECRET_EMPTY'
  /** The file is larger than `maxBytes`. */
  | 'ERR_SECRET_TOO_LARGE'
  /** The bytes are not valid in the option `encoding`. */
  | 'ERR_SECRET_ENCODING'
  /** There is no value yet; `cause` is why. */
  | 'ERR_SECRET_UNAVAILABLE';

/** A secret on disk cannot be used. The last good value is kept; watching goes on. */
export class SecretError extends ResilientError {
  override readonly name = 'SecretError';
  readonly code: SecretErrorCode;

  constructor(code: SecretErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Why certificates and their key cannot be used. */
export type TlsErrorCode =
  /** The certificate, the key or a required CA bundle does not exist. */
  | 'ERR_TLS_MISSING'
  /** A file is larger than 1 MiB. */
  | 'ERR_TLS_TOO_LARGE'
  /** The file of the certificate is not PEM, or holds no certificate. */
  | 'ERR_TLS_CERTIFICATE'
  /** The file of the key holds no private key in PEM. */
  | 'ERR_TLS_KEY'
  /** The private key is protected by a passphrase. */
  | 'ERR_TLS_KEY_ENCRYPTED'
  /** The private key does not belong to the certificate. */
  | 'ERR_TLS_MISMATCH'
  /** The chain does not lead from the certificate to its issuers in order. */
  | 'ERR_TLS_CHAIN'
  | 'ERR_TLS_EXPIRED'
  | 'ERR_TLS_NOT_YET_VALID'
  /** The CA bundle cannot be used, or is needed and there is none. */
  | 'ERR_TLS_CA'
  /** OpenSSL refuses the set, as for a key that is too short. */
  | 'ERR_TLS_REFUSED'
  /** There is no usable pair yet; `cause` is why. */
  | 'ERR_TLS_UNAVAILABLE'
  /** An optional package is needed and not installed. */
  | 'ERR_TLS_PACKAGE';

/** Certificates on disk cannot be used. The last good ones are kept; watching goes on. */
export class TlsError extends ResilientError {
  override readonly name = 'TlsError';
  readonly code: TlsErrorCode;

  constructor(code: TlsErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Why an action did not succeed. */
export type ActionErrorCode =
  /** It failed, or exited with another code than 0. */
  | 'ERR_ACTION_FAILED'
  /** It took longer than `timeoutMs` and was stopped. */
  | 'ERR_ACTION_TIMEOUT'
  /** The process to signal does not exist, or may not be signalled. */
  | 'ERR_ACTION_PROCESS'
  /** The webhook was not reached, or answered with another status than wanted. */
  | 'ERR_ACTION_WEBHOOK';

/** An action on a change failed. It is tried again. */
export class ActionError extends ResilientError {
  override readonly name = 'ActionError';
  readonly code: ActionErrorCode;

  constructor(code: ActionErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The object was closed. */
export class ClosedError extends ResilientError {
  override readonly name = 'ClosedError';
  readonly code = 'ERR_CLOSED';
}

/** A listener threw or rejected; `cause` is a copy of what it threw, without secrets. */
export class ListenerError extends ResilientError {
  override readonly name = 'ListenerError';
  readonly code = 'ERR_LISTENER';
  /** The event it listened to. */
  readonly event: string;

  /** @param secrets struck out wherever they occur in what was thrown. */
  constructor(event: string, thrown: unknown, secrets: readonly string[] = []) {
    const cause = redactError(thrown, secrets);
    super(`A listener of "${event}" failed: ${cause.message}`, { cause });
    this.event = event;
  }
}

/** The `code` of an error of this library or of Node; null where there is none. */
export function errorCodeOf(error: Error): string | null {
  return error instanceof ResilientError ? error.code : (errnoOf(error) ?? null);
}

/** The `code` of Node's permission model (`node --permission`). */
const ACCESS_DENIED = 'ERR_ACCESS_DENIED';

/** The `code` of a Node error, if it has one. */
export function errnoOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  // What Deno's permissions refuse has a name, and no code.
  if ('name' in error && error.name === 'NotCapable') return ACCESS_DENIED;
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** Whether the permission is missing: that of the file system, or of a runtime that restricts access to it. */
export function isDenied(error: unknown): boolean {
  return ['EACCES', 'EPERM', ACCESS_DENIED].includes(errnoOf(error) ?? '');
}

/** Whether the process or the machine is out of something: nothing is wrong with what was asked for. */
export function isExhausted(error: unknown): boolean {
  return ['EMFILE', 'ENFILE', 'ENOMEM'].includes(errnoOf(error) ?? '');
}

/** Whether a call failed because the path does not lead there any more: look again from the top. */
export function hasMoved(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'ESTALE', 'ELOOP'].includes(errnoOf(error) ?? '');
}
