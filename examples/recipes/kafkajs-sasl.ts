// `kafkajs` with the password or the token of a mounted file, asked for when a connection is made:
//
//   new Kafka({ brokers, sasl: password(login, 'scram-sha-512') }); // after `await login.get()`
//   new Kafka({ brokers, sasl: oauth(new TokenFile('/var/run/secrets/kafka/token')) });
import type { SASLOptions } from 'kafkajs';
import type { CredentialFiles, TokenFile } from 'resilient-watcher';

/** SASL/PLAIN and SCRAM. */
export function password(
  login: CredentialFiles,
  mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512',
): SASLOptions {
  return {
    mechanism,
    get username() {
      return login.current?.username ?? '';
    },
    get password() {
      return login.current?.password ?? '';
    },
  };
}

/** SASL/OAUTHBEARER. The client asks again before the session ends. */
export function oauth(token: TokenFile): Extract<SASLOptions, { mechanism: 'oauthbearer' }> {
  return {
    mechanism: 'oauthbearer',
    oauthBearerProvider: async () => ({ value: (await token.get()).value }),
  };
}
