import type { Agent, ClientRequest, IncomingMessage } from 'node:http';

/** The method with which Node.js sends a request through an agent; the types lack it. */
interface RequestingAgent {
  addRequest(request: ClientRequest, ...rest: unknown[]): void;
}

/**
 * Makes an agent refuse redirects and long responses, and returns it. client-node 1.x follows redirects, sends the
 * bearer token to any port of the host, and has no option to prevent that. Without its `Location` header, a redirect is
 * handled like any other failure.
 * @param maxBytes a longer response is aborted. Default: no limit, as needed for a watch.
 */
export function guardedAgent(agent: Agent, maxBytes = Infinity): Agent {
  const usual = agent as unknown as RequestingAgent;
  const guard: RequestingAgent = {
    addRequest(request, ...rest) {
      request.once('response', (answer) => {
        dropLocation(answer);
        if (maxBytes !== Infinity) limit(answer, maxBytes);
      });
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

function limit(answer: IncomingMessage, maxBytes: number): void {
  let length = 0;
  answer.on('data', (chunk: Buffer) => {
    length += chunk.length;
    if (length > maxBytes) answer.destroy(new Error(`the answer has more than ${maxBytes} bytes`));
  });
}
