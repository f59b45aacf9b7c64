// `kafkajs` with the token of a projected volume (SASL/OAUTHBEARER). The client requests a token for each new connection
// and before the session ends:
//
//   const token = new TokenFile('/var/run/secrets/kafka/token');
//   const kafka = new Kafka({ brokers, ssl: true, sasl: sasl(token) });

/** @param token a `TokenFile` */
export function sasl(token) {
  return {
    mechanism: 'oauthbearer',
    oauthBearerProvider: async () => ({ value: (await token.get()).value }),
  };
}
