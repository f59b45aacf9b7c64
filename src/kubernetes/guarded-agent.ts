import type { Agent, ClientRequest, IncomingMessage } from 'node:http';

/** What Node calls on an agent to send a request; it is not part of its types. */
interface RequestingAgent {
  addRequest(this: void, request: ClientRequest, ...rest: unknown[]): void;
}

/** What is wanted of the answers. */
interface AnswerLimits {
  /** A longer answer is given up. Default: none, as for a watch. */
  readonly maxBytes?: number | undefined;
}

/**
 * The same agent, for requests with credentials: the answers lead nowhere else. client-node 1.x follows redirects, with the
 * bearer token to any port of the host, and it has no option for that; without a `Location` a redirect is an answer like
 * any other that is not a success.
 */
export function guardedAgent(agent: Agent, { maxBytes = Infinity }: AnswerLimits = {}): Agent {
  const usual = agent as unknown as { addRequest(request: ClientRequest, ...rest: unknown[]): void };
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
