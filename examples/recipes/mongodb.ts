// `mongodb` with the token of a projected volume (MONGODB-OIDC) or the certificate of a mounted Secret (MONGODB-X509):
//
//   new MongoClient(uri, oidc(new TokenFile('/var/run/secrets/mongodb/token')));
//   new MongoClient(uri, x509(files)); // after `await files.ready()`
//
// Each new connection uses the current one; open connections continue.
import type { MongoClientOptions } from 'mongodb';
import type { TokenFile } from 'resilient-watcher';
import type { TlsFiles } from 'resilient-watcher/tls';

/** The driver's own `ENVIRONMENT: 'k8s'` reads the file directly: it keeps no last good token and ignores the dates. */
export function oidc(token: TokenFile): MongoClientOptions {
  return {
    authMechanism: 'MONGODB-OIDC',
    authMechanismProperties: {
      OIDC_CALLBACK: async () => {
        const { value, notAfter } = await token.get();
        const expiresInSeconds = Math.max(1, Math.floor((notAfter - Date.now()) / 1000));
        return { accessToken: value, ...(Number.isFinite(expiresInSeconds) && { expiresInSeconds }) };
      },
    },
  };
}

/** The server verifies the certificate, and takes its subject as the user. */
export function x509(files: TlsFiles): MongoClientOptions {
  const secureContext = {
    // Node.js asks for it for each connection.
    get context(): unknown {
      return files.current?.secureContext.context as unknown;
    },
  };
  return { tls: true, secureContext, authMechanism: 'MONGODB-X509', authSource: '$external' };
}
