// Web identity of clouds: the pod's token is exchanged for credentials of the cloud.
//
// AWS: the SDK reads AWS_WEB_IDENTITY_TOKEN_FILE by itself each time its credentials expire; there is nothing to do. But
// a token that you pass to `fromWebToken()` is never replaced; `awsCredentials` passes the current one each time.
//
// Azure: `WorkloadIdentityCredential` caches the token for 5 minutes. `ClientAssertionCredential` calls your function
// each time.

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
