/** The part of MongoDB's protocol with which a client logs in by certificate (MONGODB-X509), and asks who it is. */
import type { Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';

import { BSON } from 'mongodb';

import { createServerPair, type Authority } from '../../../test/support/certificates.js';
import { listen } from '../../../test/support/tls-clients.js';

const OP_REPLY = 1;
const OP_QUERY = 2004;
const OP_MSG = 2013;

const HELLO = {
  ok: 1,
  helloOk: true,
  isWritablePrimary: true,
  minWireVersion: 0,
  maxWireVersion: 25,
  maxBsonObjectSize: 16_777_216,
  maxMessageSizeBytes: 48_000_000,
  maxWriteBatchSize: 100_000,
};

/** Answers the commands of one connection, whose user is the subject of its certificate. */
function connection(user: string): (command: BSON.Document) => BSON.Document {
  let users: readonly BSON.Document[] = [];
  const authenticate = ({ mechanism }: BSON.Document): BSON.Document => {
    if (mechanism !== 'MONGODB-X509') return { ok: 0, errmsg: 'mechanism', code: 18 };
    users = [{ user, db: '$external' }];
    return { ok: 1, dbname: '$external', user };
  };
  return (command) => {
    if ('hello' in command || 'ismaster' in command) {
      const { speculativeAuthenticate: login } = command as { speculativeAuthenticate?: BSON.Document };
      return { ...HELLO, ...(login && { speculativeAuthenticate: authenticate(login) }) };
    }
    if ('authenticate' in command) return authenticate(command);
    if ('connectionStatus' in command) return { ok: 1, authInfo: { authenticatedUsers: users } };
    return { ok: 1 };
  };
}

/** One message, answered. */
function answerTo(message: Buffer, answer: ReturnType<typeof connection>): Buffer {
  const isQuery = message.readInt32LE(12) === OP_QUERY;
  // A query has flags, the name of the collection and two numbers before its document; a message flags and a kind.
  const start = isQuery ? message.indexOf(0, 20) + 9 : 21;
  const end = start + message.readInt32LE(start);
  const document = BSON.serialize(answer(BSON.deserialize(message.subarray(start, end))));
  const before = Buffer.alloc(isQuery ? 20 : 5);
  if (isQuery) before.writeInt32LE(1, 16); // one document
  const header = Buffer.alloc(16);
  header.writeInt32LE(header.length + before.length + document.length, 0);
  message.copy(header, 8, 4, 8); // in answer to
  header.writeInt32LE(isQuery ? OP_REPLY : OP_MSG, 12);
  return Buffer.concat([header, before, document]);
}

/** A server at `localhost`, until the test is over, that wants a certificate of `authority` from each client. */
export async function startMongodb(authority: Authority): Promise<{
  readonly port: number;
  /** Ends all connections. */
  readonly disconnect: () => void;
}> {
  const sockets = new Set<Socket>();
  const server = createServer({
    ...createServerPair(authority),
    ca: authority.cert,
    requestCert: true,
    rejectUnauthorized: true,
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket)).on('error', () => {}); // the client went away
    const answer = connection(socket.getPeerX509Certificate()?.subject ?? '');
    let received = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 4 && received.length >= received.readInt32LE(0)) {
        const length = received.readInt32LE(0);
        socket.write(answerTo(received.subarray(0, length), answer));
        received = received.subarray(length);
      }
    });
  });
  return { port: await listen(server), disconnect: () => sockets.forEach((socket) => socket.destroy()) };
}
