/** Responses of the API server. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of `body`: begins to write, and returns what to call when the client is gone. */
  readonly stream?: (write: (text: string) => void, end: () => void) => () => void;
}

/** The `reason` of a `metav1.Status`, by status code. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  422: 'Invalid',
  429: 'TooManyRequests',
  503: 'ServiceUnavailable',
};

/** A failure as a `metav1.Status`. */
export function failure(status: number, message: string, retryAfterSeconds?: number): ApiAnswer {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason: REASONS[status] ?? 'Unknown',
    ...(retryAfterSeconds !== undefined && { details: { retryAfterSeconds } }),
    code: status,
  };
  if (retryAfterSeconds === undefined) return { status, body };
  return { status, body, headers: { 'retry-after': String(retryAfterSeconds) } };
}
