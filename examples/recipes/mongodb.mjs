// `mongodb` with the token of a projected volume (MONGODB-OIDC). The driver asks for a token for each new connection
// and again when the server wants another one. Its own `ENVIRONMENT: 'k8s'` reads the file directly: it keeps no
// last good token and ignores the dates.
import { MongoClient } from 'mongodb';

/** @param token `new TokenFile('/var/run/secrets/mongodb/token')` */
export function createClient(uri, token, options = {}) {
  return new MongoClient(uri, {
    ...options,
    authMechanism: 'MONGODB-OIDC',
    authMechanismProperties: {
      OIDC_CALLBACK: async () => {
        const { value, notAfter } = await token.get();
        const expiresInSeconds = Math.max(1, Math.floor((notAfter - Date.now()) / 1000));
        return { accessToken: value, ...(Number.isFinite(expiresInSeconds) && { expiresInSeconds }) };
      },
    },
  });
}
