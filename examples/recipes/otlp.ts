// An OTLP exporter whose requests have the current token of a mounted Secret: the exporter asks before each request.
//
//   new OTLPTraceExporter({ url, headers: bearer(new TokenFile('/var/run/secrets/otlp/token')) });
import type { TokenFile } from 'resilient-watcher';

export function bearer(token: TokenFile): () => Promise<Record<string, string>> {
  return async () => ({ authorization: `Bearer ${(await token.get()).value}` });
}
