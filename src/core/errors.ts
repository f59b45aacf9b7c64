/**
 * The errors of the library: one class for each way a caller would react. `code` is stable and can be switched on;
 * messages may change. Wrong arguments throw plain `TypeError`s and `RangeError`s.
 */
import { errnoOf } from './errno.js';
import { redactError, ResilientError } from './resilient-error.js';

export { ResilientError };

/** Why a target cannot be read although something exists at its path. */
export type TargetErrorCode =
  /** The path does not exist. Only where that is a failure and not a state, as in `readVolume`. */
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
  /** The condition of `waitFor` was not met in time. */
  | 'ERR_TARGET_TIMEOUT';

/** The target is there but cannot be read. It may heal by itself; watching goes on. */
export class TargetError extends ResilientError {
  override readonly name = 'TargetError';
  readonly code: TargetErrorCode;
  /** The path that failed: the target or a component of its path. */
  readonly path: string;

  constructor(code: TargetErrorCode, path: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.path = path;
  }
}

/** Why a backend cannot report changes. */
export type BackendErrorCode =
  | 'ERR_BACKEND_INSTANCE_LIMIT'
  | 'ERR_BACKEND_WATCH_LIMIT'
  | 'ERR_BACKEND_UNAVAILABLE'
  /** The target is on a file system without events (NFS, FUSE, …); it is polled while it is there. */
  | 'ERR_BACKEND_NO_EVENTS'
  | 'ERR_BACKEND_DOWN'
  /**
   * The backend could watch the target, but another one is better suited. Not a failure while there is another one.
   */
  | 'ERR_BACKEND_UNSUITED';

/** Native watching is unavailable or has ended. The target is polled, and the backend is retried. */
export class BackendError extends ResilientError {
  override readonly name = 'BackendError';
  readonly code: BackendErrorCode;
  /** The name of the backend. */
  readonly backend: string;
  /** For the two inotify limits: the kernel setting to raise. */
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
  /** The client failed for none of the reasons below; `cause` is what it threw. */
  | 'ERR_TOKEN_REQUEST'
  /** The API server was not reached: refused, reset, no such host, or a certificate that is not trusted. */
  | 'ERR_TOKEN_NETWORK'
  /** 401: the credentials of the client have expired, or are not valid yet. */
  | 'ERR_TOKEN_UNAUTHORIZED'
  /** 403: the client may not create tokens; RBAC has to be changed. */
  | 'ERR_TOKEN_FORBIDDEN'
  /** 404: there is no such ServiceAccount, or the object to bind to is gone. */
  | 'ERR_TOKEN_NOT_FOUND'
  /** The API server rejects the request (400, 409, 422). */
  | 'ERR_TOKEN_INVALID'
  /** The API server throttles the client (429, or 503 with `Retry-After`). */
  | 'ERR_TOKEN_THROTTLED'
  /** No answer in time. */
  | 'ERR_TOKEN_TIMEOUT'
  /** The API server has no TokenRequest API. Thrown by a `TokenClient`; the projected file is used instead. */
  | 'ERR_TOKEN_UNSUPPORTED'
  /** The answer or the file is not a token, or its dates make no sense. */
  | 'ERR_TOKEN_MALFORMED'
  /** The token has expired; `cause` says why there is no newer one. */
  | 'ERR_TOKEN_EXPIRED'
  /** There has been no token yet; `cause` says why. */
  | 'ERR_TOKEN_UNAVAILABLE'
  /** The client cannot work: a package that it needs is missing. Not retried. */
  | 'ERR_TOKEN_CLIENT'
  /** The token file cannot be read. */
  | 'ERR_TOKEN_FILE'
  /** A sink failed; `cause` is what it threw. */
  | 'ERR_TOKEN_SINK';

/** There is no usable token, or it could not be delivered. It may heal by itself; refreshing continues. */
export class TokenError extends ResilientError {
  override readonly name = 'TokenError';
  readonly code: TokenErrorCode;
  /** How long the server asked to wait (`Retry-After`), ms. */
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

/** Why something from the cluster, kubelet or a kubeconfig cannot be used. */
export type KubernetesErrorCode =
  /** A kubeconfig cannot be read, or lacks something that is needed to reach a cluster. */
  | 'ERR_KUBECONFIG'
  /** `@kubernetes/client-node` is not installed, or its version is not supported. */
  | 'ERR_KUBERNETES_CLIENT'
  /** The certificates of the cluster's authority cannot be read. */
  | 'ERR_KUBECONFIG_CA'
  /** The tokens that kubelet sent cannot be parsed. */
  | 'ERR_CSI_TOKENS'
  /** kubelet sent no token for this audience: the CSIDriver has to be changed. */
  | 'ERR_CSI_AUDIENCE'
  /** The target path is not a directory to which a volume can be published. */
  | 'ERR_CSI_TARGET'
  /** The contents of a volume could not be produced; `cause` is what was thrown. */
  | 'ERR_CSI_PRODUCE';

/** Something that the cluster, kubelet or a kubeconfig provided cannot be used. The last good state is kept. */
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
  /** Another process moved or replaced the temporary file or revision before it was published. */
  | 'ERR_WRITE_CONFLICT'
  | 'ERR_WRITE_SOURCE'
  | 'ERR_WRITE_IO';

/** The step of an atomic write that failed, in the order of the steps. */
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

/** A file or a volume could not be written. Unless `published` is true, readers see the previous content. */
export class WriteError extends ResilientError {
  override readonly name = 'WriteError';
  readonly code: WriteErrorCode;
  /** The absolute path of the file or volume. */
  readonly path: string;
  readonly step: WriteStep;
  /** Whether readers see the new content: it is in place, but a later step failed. */
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
  /** No usable configuration was found; `problems` lists everything that is wrong. */
  | 'ERR_CONFIG_INVALID'
  /** There is nothing at the path, and it is not optional. */
  | 'ERR_CONFIG_MISSING'
  /** A source cannot be read. */
  | 'ERR_CONFIG_UNREADABLE'
  /** There are more bytes than `maxBytes`. */
  | 'ERR_CONFIG_TOO_LARGE'
  /** The text is not in the format of the parser. */
  | 'ERR_CONFIG_PARSE'
  /** The values are refused: a key that would change a prototype, or the top level is not a map. */
  | 'ERR_CONFIG_REFUSED'
  /** `validate` rejects the merged values. */
  | 'ERR_CONFIG_SCHEMA'
  /** A parser or `validate` did not answer in time. */
  | 'ERR_CONFIG_TIMEOUT'
  /** An optional package is required and not installed. */
  | 'ERR_CONFIG_PACKAGE'
  /** The provider is already being watched. */
  | 'ERR_CONFIG_WATCHED'
  /** The file is mounted in a way that never shows an update (`subPath`). */
  | 'ERR_CONFIG_FROZEN';

/** One thing that is wrong with a configuration: names and places, never a value. */
export interface ConfigProblem {
  readonly code: ConfigErrorCode;
  /**
   * The name of the source: a path, `environment APP_*`, `values`, or `validate` when the value comes from no
   * source.
   */
  readonly source: string;
  /** The path of the value, from the top. */
  readonly path?: readonly string[] | undefined;
  /** The line in the text, from 1. */
  readonly line?: number | undefined;
  /** The column, from 1. */
  readonly column?: number | undefined;
  /** What is wrong, without values. */
  readonly message: string;
}

/** A configuration cannot be used. Neither its message nor its problems quote a value of the configuration. */
export class ConfigError extends ResilientError {
  override readonly name = 'ConfigError';
  readonly code: ConfigErrorCode;
  /** Everything that is wrong, in the order of the sources. */
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

/** Why the files of a secret have no usable value. */
export type SecretErrorCode =
  /** The file, or a key of the directory, does not exist. */
  | 'ERR_SECRET_MISSING'
  | 'ERR_SECRET_EMPTY'
  /** The file is larger than 1 MiB. */
  | 'ERR_SECRET_TOO_LARGE'
  /** The bytes are not UTF-8, the default of the option `encoding`. */
  | 'ERR_SECRET_ENCODING'
  /** There is no value yet; `cause` says why. */
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
  /** The certificate, the key or a required CA bundle does not exist, or is not a regular file. */
  | 'ERR_TLS_MISSING'
  /** A file is larger than 1 MiB. */
  | 'ERR_TLS_TOO_LARGE'
  /** The certificate file is not PEM, or holds no certificate. */
  | 'ERR_TLS_CERTIFICATE'
  /** The key file holds no private key in PEM. */
  | 'ERR_TLS_KEY'
  /** The private key is protected by a passphrase. */
  | 'ERR_TLS_KEY_ENCRYPTED'
  /** The private key does not belong to the certificate. */
  | 'ERR_TLS_MISMATCH'
  /** In the chain, a certificate is not followed by its issuer. */
  | 'ERR_TLS_CHAIN'
  | 'ERR_TLS_EXPIRED'
  | 'ERR_TLS_NOT_YET_VALID'
  /** The CA bundle cannot be used, or is required and missing. */
  | 'ERR_TLS_CA'
  /** OpenSSL rejects the set, for example because the key is too short. */
  | 'ERR_TLS_REFUSED'
  /** There is no usable pair yet; `cause` says why. */
  | 'ERR_TLS_UNAVAILABLE'
  /** An optional package is required and not installed. */
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
  /** It failed, or exited with a code other than 0. */
  | 'ERR_ACTION_FAILED'
  /** It took longer than `timeoutMs` and was stopped. */
  | 'ERR_ACTION_TIMEOUT'
  /** The process to signal does not exist, or may not be signalled. */
  | 'ERR_ACTION_PROCESS'
  /** The webhook was not reached, or answered with another status than expected. */
  | 'ERR_ACTION_WEBHOOK';

/** An action failed. It is retried. */
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

/** A listener threw or rejected; `cause` is a copy of the thrown value, without secrets. */
export class ListenerError extends ResilientError {
  override readonly name = 'ListenerError';
  readonly code = 'ERR_LISTENER';
  /** The event it listened to. */
  readonly event: string;

  /** @param secrets removed wherever they occur in the thrown value. */
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
