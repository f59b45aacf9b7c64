// Web identity of clouds: the pod's token is exchanged for credentials of the cloud.
//
// AWS: the SDK reads AWS_WEB_IDENTITY_TOKEN_FILE by itself each time its credentials run out: nothing to do. Only where
// `fromWebToken()` is given a token by you, it would be given the same one for ever; `awsCredentials` reads it anew.
//
// Azure: `WorkloadIdentityCredential` keeps what it read for 5 minutes. `ClientAssertionCredential` asks each time.

/**
 * @param token `new TokenFile(process.env.AWS_WEB_IDENTITY_TOKEN_FILE)`
 * @param fromWebToken of `@aws-sdk/credential-providers`
 */
export function awsCredentials(token, fromWebToken, options) {
  return async () => fromWebToken({ ...options, webIdentityToken: (await token.get()).value })();
}

/**
 * @param token `new TokenFile(process.env.AZURE_FEDERATED_TOKEN_FILE)`
 * @param ClientAssertionCredential of `@azure/identity`
 */
export function azureCredential(token, ClientAssertionCredential, { tenantId, clientId }) {
  return new ClientAssertionCredential(tenantId, clientId, async () => (await token.get()).value);
}
