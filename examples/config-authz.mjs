/**
 * An HTTP server with an interceptor that checks requests against a policy in a mounted ConfigMap: an account may do
 * what its roles permit. A new account is admitted as soon as the mount has changed, without a restart. An invalid
 * update changes nothing.
 *
 *   POLICY_FILE   the mounted key; default /etc/authz/policy.yaml
 *   PORT          default 8080
 *
 *   roles: { viewer: [GET], editor: [GET, PUT] }
 *   bindings: [{ role: viewer, accounts: [alice] }]
 */
import { createServer } from 'node:http';

import { ConfigLoader, FileProvider } from 'resilient-watcher/config';
import { z } from 'zod';

const { POLICY_FILE: file = '/etc/authz/policy.yaml', PORT: port = '8080' } = process.env;

const policySchema = z
  .strictObject({
    roles: z.record(z.string(), z.array(z.enum(['GET', 'HEAD', 'PUT', 'POST', 'DELETE']))),
    bindings: z.array(z.strictObject({ role: z.string(), accounts: z.array(z.string().min(1)) })),
  })
  .refine(({ roles, bindings }) => bindings.every(({ role }) => Object.hasOwn(roles, role)), {
    path: ['bindings'],
    message: 'each role must be one of the roles',
  });

const policy = new ConfigLoader({
  sources: [{ provider: new FileProvider(file) }],
  validate: policySchema,
});
policy.on('change', () => console.log('policy changed'));
policy.on('rejected', ({ problems }) => console.log('policy rejected:', problems));
policy.on('unreadable', ({ error }) => console.log('policy cannot be read:', error.message));

/** The program does not start without a valid policy. */
await policy.load();

/** Reads the current policy once, so that no request sees parts of two. */
function isAllowed(account, method) {
  const { roles, bindings } = policy.current;
  return bindings.some(({ role, accounts }) => accounts.includes(account) && roles[role].includes(method));
}

/** The interceptor. A real one would identify the account by a client certificate or a token. */
function authorized(handler) {
  return (request, response) => {
    if (isAllowed(request.headers['x-account'], request.method)) handler(request, response);
    else response.writeHead(403).end('forbidden');
  };
}

const server = createServer(authorized((_request, response) => response.end('welcome')));
server.listen(Number(port), '127.0.0.1', () => console.log('listening on', server.address().port));

process.once('SIGTERM', () => {
  server.close();
  void policy.close();
});
