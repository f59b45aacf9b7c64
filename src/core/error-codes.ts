/**
 * Every error code, by class: what it means, and what to do. The types of `code` and the tables of docs/errors.md are
 * generated from this table. Other modules import only its types, so the texts are not part of the package.
 */
type Row = [meaning: string, remedy: string];

// prettier-ignore
export const ERROR_CODES = {
  TargetError: {
    ERR_TARGET_MISSING: ['`readVolume` found nothing at the path', 'check the mount; a watcher reports `missing` instead'],
    ERR_TARGET_PATH: ['the path does not lead to what is expected: a component is not a directory, there are more than 40 symbolic links, or it ends at a pipe, socket or device, or at a file where a volume is expected', 'check the path and its links, starting with `error.path`; it recovers'],
    ERR_TARGET_ACCESS: ['the process is not allowed to read the target', 'check the mode, `fsGroup` and `runAsUser` of the pod; it recovers'],
    ERR_TARGET_LAYOUT: ['`..data` or a key of a volume leads out of the volume', 'find out which program writes to the directory; kubelet never does that'],
    ERR_TARGET_TOO_LARGE: ['`AtomicVolume.read()` found more than `maxFiles`, `maxContentBytes` or `maxTotalBytes`', 'raise the limit'],
    ERR_TARGET_TIMEOUT: ['the condition of `waitFor` was not met within `timeoutMs`', 'see the last state in the message'],
    ERR_TARGET_IO: ['reading failed', 'see `cause.code` for the errno; it recovers'],
  },
  BackendError: {
    ERR_BACKEND_LIMIT: ['the user of the process has no inotify instances or no inotify watches left', 'raise the sysctl in `error.sysctl`; until then the target is polled'],
    ERR_BACKEND_UNAVAILABLE: ['the backend cannot be used here, for example `parcel` without its package or in a worker thread', "with `backend: 'auto'`, do nothing; otherwise choose another backend"],
    ERR_BACKEND_NO_EVENTS: ['the file system reports no changes made elsewhere (NFS, SMB, FUSE, …)', 'do nothing: the target is polled; lower `pollIntervalMs` to see changes sooner'],
    ERR_BACKEND_DOWN: ['the backend stopped', 'do nothing: it is restarted'],
    ERR_BACKEND_UNSUITED: ['another backend suits the target better', 'do nothing: the other one is used'],
  },
  WriteError: {
    ERR_WRITE_NO_SPACE: ['the disk or a quota is full, or the file would be too large', 'make room; the old content is intact'],
    ERR_WRITE_ACCESS: ['the process may not write to the directory or set the `owner`, or the file system is read-only', 'check the owner and mode of the directory, `readOnlyRootFilesystem` and the mount; ConfigMaps, Secrets and tokens are never writable'],
    ERR_WRITE_NO_DIRECTORY: ['the directory does not exist', 'create it, or set `createDirectory: true`'],
    ERR_WRITE_NOT_FILE: ["the path exists and is not a regular file, or it is a link that cannot be followed, or any link with `symlink: 'error'`", 'remove what is at the path, or choose another path'],
    ERR_WRITE_MOUNTED: ['the path cannot be replaced because it is mounted by itself (`subPath`, `docker -v file:file`), or because a mount lies between it and its directory', 'mount its directory'],
    ERR_WRITE_UNTRUSTED: ['in a sticky directory that others can write to, another user put a link or a file at the path', 'remove it; use a directory of your own'],
    ERR_WRITE_CONFLICT: ['another process moved or replaced what was being written before it was published', 'find the other process; the old content is intact'],
    ERR_WRITE_SOURCE: ['the stream or iterable that provides the data failed', 'see `cause`'],
    ERR_WRITE_IO: ['another system call failed', 'see `cause.code` for the errno'],
  },
  TokenError: {
    ERR_TOKEN_REQUEST: ['the client failed for a reason that has no code of its own', 'see `cause`; it recovers'],
    ERR_TOKEN_NETWORK: ['the API server could not be reached, or its certificate is not trusted', 'check network policies and the CA; it recovers'],
    ERR_TOKEN_UNAUTHORIZED: ['401: the credentials of the client are expired or not valid yet', 'wait for kubelet to project a new token, or delete the pod so that it is replaced; see [tokens](tokens.md#liveness)'],
    ERR_TOKEN_FORBIDDEN: ['403: the client may not create tokens', 'grant `create` on `serviceaccounts/token`: [RBAC](kubernetes.md)'],
    ERR_TOKEN_INVALID: ['the API server refuses the request (400, 409, 422), or there is no such ServiceAccount or object to bind to (404)', 'check `namespace`, `serviceAccount`, `audiences` and `expirationSeconds`'],
    ERR_TOKEN_THROTTLED: ['429, or 503 with `Retry-After`', 'do nothing: the next attempt waits as long as the server asked (`error.retryAfterMs`)'],
    ERR_TOKEN_TIMEOUT: ['no answer within `attemptTimeoutMs`, or the client was not ready within a minute', 'check the load of the API server, or of this machine; it recovers'],
    ERR_TOKEN_UNSUPPORTED: ['the server has no TokenRequest API', 'do nothing: the token in the projected file is used'],
    ERR_TOKEN_MALFORMED: ['the response or the file is not a token, or its dates are implausible', 'find out which program writes the file'],
    ERR_TOKEN_EXPIRED: ['the token has expired', 'see `cause` for why there is no newer one; check the clocks'],
    ERR_TOKEN_UNAVAILABLE: ['there has been no token yet', 'see `cause` for the reason'],
    ERR_TOKEN_CLIENT: ['the client cannot work here, for example because `@kubernetes/client-node` is missing; it is not retried', 'install the package that the message names, and restart the program'],
    ERR_TOKEN_FILE: ['the token file cannot be read', 'check the mount'],
    ERR_TOKEN_SINK: ['a sink failed', 'see `cause`, a copy of the error that it threw; the sink is called again, and other sinks are not affected'],
  },
  KubernetesError: {
    ERR_KUBECONFIG: ["a kubeconfig, or the files of the pod that replace it, cannot be read or are incomplete, or the cluster's CA certificates are not usable", 'see the message, which names the part that is wrong'],
    ERR_CLUSTER_FORBIDDEN: ['403: `PodSync` may not list and watch objects or pods, or patch pods', 'grant it by RBAC: [delivery](delivery.md#rbac); it recovers'],
    ERR_CLUSTER_REQUEST: ['a list, a watch or a patch of `PodSync` failed', 'see the message; it is tried again'],
    ERR_CSI_TOKENS: ["the tokens passed by kubelet cannot be parsed, or there is none for this audience", 'check `tokenRequests` of the CSIDriver'],
    ERR_CSI_TARGET: ['the target path is relative, not normalized, the root directory, a file or a link, or it belongs to another volume; or `prepareTarget` or `removeTarget` failed or did not return', 'check the caller of `NodePublishVolume`; for a hook, see `cause`'],
    ERR_CSI_PRODUCE: ['the producer failed, or returned something other than a set of files', 'see `cause`, a copy of the error that it threw; the previous contents are kept'],
  },
  ConfigError: {
    ERR_CONFIG_INVALID: ['`load()` found no valid configuration', 'see `problems`'],
    ERR_CONFIG_MISSING: ['there is nothing at the path', 'check the mount, or set `optional: true`'],
    ERR_CONFIG_UNREADABLE: ['a source cannot be read', 'see the message for the reason'],
    ERR_CONFIG_TOO_LARGE: ['a source has more than `maxBytes` (1 MiB)', 'raise `maxBytes`'],
    ERR_CONFIG_PARSE: ['the text is not in the format of the parser, the top level is not a map, a key has a forbidden name such as `__proto__`, or a value is of a type that no text format has', 'correct the source; see `line` and `column`, or `path`'],
    ERR_CONFIG_SCHEMA: ['`validate` refuses the merged values', 'correct the value at `path` in `source`'],
    ERR_CONFIG_TIMEOUT: ['a parser or `validate` did not finish in time', 'raise `parseTimeoutMs` or `validateTimeoutMs`, or make the function faster'],
    ERR_CONFIG_WATCHED: ['the provider is already being watched', 'create another provider for the same path'],
    ERR_CONFIG_FROZEN: ['the file is a `subPath` mount, which is never updated', 'mount the directory'],
  },
  SecretError: {
    ERR_SECRET_MISSING: ['the file, or a key of the directory, does not exist', 'check the mount and the keys'],
    ERR_SECRET_INVALID: ['the file is empty or contains only white space, is larger than 1 MiB, or is not in the `encoding` (UTF-8 by default)', 'check the path and the `encoding`, and find out which program writes the file'],
    ERR_SECRET_UNAVAILABLE: ['there is no value yet', 'see `cause` for the reason'],
  },
  TlsError: {
    ERR_TLS_MISSING: ['the certificate, the key or a required CA bundle does not exist, or is not a regular file', 'check the mount and the paths'],
    ERR_TLS_PEM: ['a file is not a complete certificate or private key in PEM, the key is protected by a passphrase, or the file is larger than 1 MiB', 'see the message for what the file contains; convert DER with `openssl x509 -inform der`, and store the key without a passphrase'],
    ERR_TLS_MISMATCH: ['the private key does not belong to the first certificate', 'publish both together, the certificate before its issuers'],
    ERR_TLS_EXPIRED: ['the certificate has expired', 'renew it; check the clock'],
    ERR_TLS_NOT_YET_VALID: ['the certificate is not valid yet', 'do nothing: it is used within a minute when it is valid; check the clock'],
    ERR_TLS_CA: ['the CA bundle cannot be used, or is required and missing; or a CA was removed before a request was sent', 'check the CA file; repeat the request'],
    ERR_TLS_PEER: ['a peer of `resilient-watcher/spiffe` that OpenSSL has verified has no SPIFFE ID, is of another trust domain, or is not authorized', 'see the message for which of these'],
    ERR_TLS_REFUSED: ['OpenSSL rejects the set, for example because the key is too short', "see the message for OpenSSL's reason"],
    ERR_TLS_UNAVAILABLE: ['there is no usable set yet', 'see `cause` for the reason'],
    ERR_TLS_UNSUPPORTED: ['this version of Node.js cannot change the default CA list, or Bun cannot change the certificate of this server', 'see the message, which names what can be used instead'],
  },
  ActionError: {
    ERR_ACTION_FAILED: ['an action threw, its command could not be started or exited with a code other than 0, its process does not exist or may not be signaled, or its webhook could not be reached or answered with a status that is not accepted', 'see the message, `cause` and the output of the command; it is run again. To signal a process in a sidecar, set `shareProcessNamespace` and run as the same user. A webhook follows no redirects'],
    ERR_ACTION_TIMEOUT: ['the action took longer than `timeoutMs` and was stopped', 'raise `timeoutMs`, or find out what the action is waiting for'],
  },
  PackageError: {
    ERR_PACKAGE: ['an optional package is not installed, or its version is not supported', 'install the package and version that the message names'],
  },
  ClosedError: {
    ERR_CLOSED: ['the object was closed', 'create a new one'],
  },
  ListenerError: {
    ERR_LISTENER: [
      'a listener threw or rejected, or a function of yours in an option (`ignore`, `schedule`)',
      'fix the listener or the function; see `event` and `cause`',
    ],
  },
} satisfies Record<string, Record<`ERR_${string}`, Row>>;

type ErrorCodes = typeof ERROR_CODES;

/** The names of the classes. */
export type ErrorName = keyof ErrorCodes;

type CodesByName = { [Name in ErrorName]: keyof ErrorCodes[Name] };

/** The codes of one class. */
export type CodeOf<Name extends ErrorName> = CodesByName[Name];

/** The `code` of any `ResilientError`. docs/errors.md says what each code means and what to do. */
export type ErrorCode = CodesByName[ErrorName];
