// `nats` with the username and password of a mounted Secret, and TLS: each connection is made with the current ones.
import { connect as connectNats, type ConnectionOptions, type NatsConnection } from 'nats';
import type { CredentialFiles } from 'resilient-watcher';
import type { TlsFiles } from 'resilient-watcher/tls';

/** @param options of `connect()`, without user, pass and tls */
export async function connect(
  login: CredentialFiles,
  options: ConnectionOptions,
  files?: TlsFiles,
): Promise<NatsConnection> {
  await Promise.all([login.get(), files?.get()]);
  const text = (name: 'ca' | 'cert' | 'key') => ({
    enumerable: true,
    get: () => files?.current?.options[name]?.toString(),
  });
  const tls = Object.defineProperties({}, { ca: text('ca'), cert: text('cert'), key: text('key') });
  return connectNats({
    ...options,
    ...(files && { tls }),
    authenticator: () => ({ user: login.current?.username ?? '', pass: login.current?.password ?? '' }),
    // A login may be refused while the server and the file differ.
    ignoreAuthErrorAbort: true,
    maxReconnectAttempts: -1,
  });
}
