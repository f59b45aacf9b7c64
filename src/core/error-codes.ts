/** The codes of each error class. docs/errors.md says what each code means, and what to do. */
// prettier-ignore
interface ErrorCodes {
  TargetError:
    | 'ERR_TARGET_MISSING' | 'ERR_TARGET_PATH' | 'ERR_TARGET_ACCESS' | 'ERR_TARGET_DIRECTORY'
    | 'ERR_TARGET_LAYOUT' | 'ERR_TARGET_TOO_LARGE' | 'ERR_TARGET_TIMEOUT' | 'ERR_TARGET_IO';
  BackendError:
    | 'ERR_BACKEND_LIMIT' | 'ERR_BACKEND_UNAVAILABLE' | 'ERR_BACKEND_NO_EVENTS' | 'ERR_BACKEND_DOWN';
  WriteError:
    | 'ERR_WRITE_NO_SPACE' | 'ERR_WRITE_ACCESS' | 'ERR_WRITE_NO_DIRECTORY' | 'ERR_WRITE_NOT_FILE'
    | 'ERR_WRITE_MOUNTED' | 'ERR_WRITE_UNTRUSTED' | 'ERR_WRITE_CONFLICT' | 'ERR_WRITE_SOURCE'
    | 'ERR_WRITE_IO';
  TokenError:
    | 'ERR_TOKEN_REQUEST' | 'ERR_TOKEN_NETWORK' | 'ERR_TOKEN_UNAUTHORIZED' | 'ERR_TOKEN_FORBIDDEN'
    | 'ERR_TOKEN_INVALID' | 'ERR_TOKEN_THROTTLED' | 'ERR_TOKEN_TIMEOUT' | 'ERR_TOKEN_UNSUPPORTED'
    | 'ERR_TOKEN_MALFORMED' | 'ERR_TOKEN_EXPIRED' | 'ERR_TOKEN_UNAVAILABLE' | 'ERR_TOKEN_CLIENT'
    | 'ERR_TOKEN_FILE' | 'ERR_TOKEN_SINK';
  KubernetesError:
    | 'ERR_KUBECONFIG' | 'ERR_CLUSTER_FORBIDDEN' | 'ERR_CLUSTER_REQUEST' | 'ERR_API_ANSWER'
    | 'ERR_API_TOO_LONG' | 'ERR_CSI_TOKENS' | 'ERR_CSI_TARGET' | 'ERR_CSI_PRODUCE';
  ConfigError:
    | 'ERR_CONFIG_INVALID' | 'ERR_CONFIG_MISSING' | 'ERR_CONFIG_UNREADABLE' | 'ERR_CONFIG_TOO_LARGE'
    | 'ERR_CONFIG_PARSE' | 'ERR_CONFIG_SCHEMA' | 'ERR_CONFIG_TIMEOUT' | 'ERR_CONFIG_UNHEALTHY'
    | 'ERR_CONFIG_WATCHED' | 'ERR_CONFIG_FROZEN';
  SecretError: 'ERR_SECRET_MISSING' | 'ERR_SECRET_INVALID' | 'ERR_SECRET_UNAVAILABLE';
  TlsError:
    | 'ERR_TLS_MISSING' | 'ERR_TLS_PEM' | 'ERR_TLS_MISMATCH' | 'ERR_TLS_EXPIRED' | 'ERR_TLS_NOT_YET_VALID'
    | 'ERR_TLS_CA' | 'ERR_TLS_REFUSED' | 'ERR_TLS_UNAVAILABLE' | 'ERR_TLS_UNSUPPORTED';
  ActionError: 'ERR_ACTION_FAILED' | 'ERR_ACTION_TIMEOUT';
  PackageError: 'ERR_PACKAGE';
  ClosedError: 'ERR_CLOSED';
  ListenerError: 'ERR_LISTENER';
}

/** The names of the classes. */
export type ErrorName = keyof ErrorCodes;

/** The codes of one class. */
export type CodeOf<Name extends ErrorName> = ErrorCodes[Name];

/** The `code` of any `ResilientError`. docs/errors.md says what each code means and what to do. */
export type ErrorCode = ErrorCodes[ErrorName];
