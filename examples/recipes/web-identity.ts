// Workload identity: the token of a projected volume is exchanged for credentials of a cloud. Each exchange uses the
// current token.
//
//   new S3Client({ credentials: awsCredentials(new TokenFile(process.env.AWS_WEB_IDENTITY_TOKEN_FILE!), { roleArn }) });
//   googleCredentials(new TokenFile('/var/run/secrets/google/token'), { audience, token_url });
//   new ClientAssertionCredential(tenantId, clientId, assertion(new TokenFile(process.env.AZURE_FEDERATED_TOKEN_FILE!)));
import { fromWebToken } from '@aws-sdk/credential-providers';
import { IdentityPoolClient, type IdentityPoolClientOptions } from 'google-auth-library';
import type { TokenFile } from 'resilient-watcher';

/** For `ClientAssertionCredential` of `@azure/identity`, and whatever else asks a function for the token. */
export function assertion(token: TokenFile): () => Promise<string> {
  return async () => (await token.get()).value;
}

/** The SDK calls it again before the credentials expire. `fromWebToken()` alone keeps its first token. */
export function awsCredentials(
  token: TokenFile,
  init: Omit<Parameters<typeof fromWebToken>[0], 'webIdentityToken'>,
): ReturnType<typeof fromWebToken> {
  return async (context) => fromWebToken({ ...init, webIdentityToken: (await token.get()).value })(context);
}

/** Workload identity federation. @param options `audience` and `token_url`, as in the file that gcloud generates */
export function googleCredentials(
  token: TokenFile,
  options: Pick<IdentityPoolClientOptions, 'audience' | 'token_url'>,
): IdentityPoolClient {
  return new IdentityPoolClient({
    ...options,
    type: 'external_account',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    subject_token_supplier: { getSubjectToken: assertion(token) },
  });
}
