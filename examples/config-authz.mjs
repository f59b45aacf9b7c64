/**
 * An HTTP server behind an interceptor that asks a policy in a mounted ConfigMap: who is bound to a role may do what
 * the role permits. A new account is let in when the mount has changed, without a restart, and nobody is let in or
 * locked out because an update was broken.
 *
 *   POLICY_FILE   the mounted key; default /etc/authz/policy.yaml
 *   PORT          default 8080
 *
 *   roles: { viewer: [GET], editor: [GET, PUT] }
 *   bindings: [{ role: viewer, accounts: [alice] }]
 */
import { createServer } from 'node:http';

import { ConfigLoader, FileProvider, yamlParser } from 'resilient-watcher/config';
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
  sources: [{ provider: new FileProvider(file), parser: yamlParser }],
  validate: policySchema,
});
policy.on('change', () => console.log('policy changed'));
policy.on('rejected', ({ problems }) => console.log('policy rejected:', problems));
policy.on('error', (error) => console.log('policy cannot be read:', error.message));

/** Without a policy that is good the program does not start. */
await policy.load();

/** Asks the policy of this moment, so that no request sees half of one. */
function isAllowed(account, method) {
  const { roles, bindings } = policy.current;
  return bindings.some(({ role, accounts }) => accounts.includes(account) && roles[role].includes(method));
}

/** The interceptor. Who asks would be told by a client certificate or a token. */
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
