import type { Agent, ClientRequest, IncomingMessage } from 'node:http';

/** The method with which Node.js sends a request through an agent; the types lack it. */
interface RequestingAgent {
  addRequest(request: ClientRequest, ...rest: unknown[]): void;
}

/**
 * Makes an agent refuse redirects, and returns it. client-node 1.x follows redirects, sends the bearer token to any port
 * of the host, and has no option to prevent that. Without its `Location` header, a redirect is handled like any other
 * failure.
 */
export function guardedAgent(agent: Agent): Agent {
  const usual = agent as unknown as RequestingAgent;
  const guard: RequestingAgent = {
    addRequest(request, ...rest) {
      request.once('response', dropLocation);
      usual.addRequest(request, ...rest);
    },
  };
  return Object.assign(Object.create(agent) as Agent, guard);
}

function dropLocation({ headers, rawHeaders }: IncomingMessage): void {
  delete headers.location;
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
    if (rawHeaders[at]?.toLowerCase() === 'location') rawHeaders.splice(at, 2);
  }
}
