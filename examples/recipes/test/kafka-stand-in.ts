/** The part of Kafka's protocol with which a client logs in: ApiVersions, SaslHandshake, SaslAuthenticate. */
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import { createServer } from 'node:net';

import { listen } from '../../../test/support/tls-clients.js';

/** Takes what the client says, yields what the server answers. Throws when the login is refused. */
type Exchange = Generator<string, string, string>;

interface Server {
  /** By username. May change. */
  readonly passwords: ReadonlyMap<string, string>;
  /** Called for each login: by which mechanism, and as whom or with which token. */
  readonly onLogin: (mechanism: string, who: string) => void;
}

const MECHANISMS: Readonly<Record<string, (server: Server) => Exchange>> = {
  PLAIN: function* ({ passwords, onLogin }) {
    const [, user = '', password] = (yield '').split('\0');
    if (passwords.get(user) !== password) throw new Error('refused');
    onLogin('PLAIN', user);
    return '';
  },
  'SCRAM-SHA-256': (server) => scram('SHA-256', server),
  'SCRAM-SHA-512': (server) => scram('SHA-512', server),
  OAUTHBEARER: function* ({ onLogin }) {
    const token = /\u0001auth=Bearer ([^\u0001]+)\u0001/.exec(yield '')?.[1] ?? '';
    onLogin('OAUTHBEARER', token);
    return '';
  },
};

/** RFC 5802. */
function* scram(hash: string, { passwords, onLogin }: Server): Exchange {
  const algorithm = hash.replace('-', '');
  const hmac = (key: Buffer, text: string): Buffer => createHmac(algorithm, key).update(text).digest();
  const first = (yield '').replace(/^n,,/, '');
  const [, user = '', nonce = ''] = /^n=([^,]*),r=(.*)$/.exec(first) ?? [];
  const [salt, iterations] = [randomBytes(16), 4096];
  const challenge = `r=${nonce}${randomBytes(9).toString('hex')},s=${salt.toString('base64')},i=${iterations}`;
  const [answer = '', proof] = (yield challenge).split(',p=');
  const length = Number(hash.slice(-3)) / 8;
  const salted = pbkdf2Sync(passwords.get(user) ?? '', salt, iterations, length, algorithm);
  const conversation = [first, challenge, answer].join(',');
  const key = hmac(salted, 'Client Key');
  const signature = hmac(createHash(algorithm).update(key).digest(), conversation);
  const expected = key.map((byte, index) => byte ^ (signature[index] ?? 0));
  if (Buffer.from(expected).toString('base64') !== proof) throw new Error('refused');
  onLogin(`SCRAM-${hash}`, user);
  return `v=${hmac(hmac(salted, 'Server Key'), conversation).toString('base64')}`;
}

const int16 = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff]);
function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
const text16 = (text: string): Buffer => Buffer.concat([int16(text.length), Buffer.from(text)]);
const text32 = (text: string): Buffer => Buffer.concat([int32(text.length), Buffer.from(text)]);

const REFUSED = 58;
/** The number of each request, with the versions that are known here. */
const [HANDSHAKE, API_VERSIONS, AUTHENTICATE] = [
  [17, 0, 1],
  [18, 2, 2],
  [36, 0, 0],
] as const;

/** Answers the requests of one connection, each without its length. */
function connection(server: Server): (request: Buffer) => Buffer {
  let exchange: Exchange | undefined;
  const answers: Readonly<Record<number, (body: Buffer) => Buffer>> = {
    [API_VERSIONS[0]]() {
      const apis = [HANDSHAKE, API_VERSIONS, AUTHENTICATE];
      return Buffer.concat([int16(0), int32(apis.length), ...apis.flat().map(int16), int32(0)]);
    },
    [HANDSHAKE[0]](body) {
      exchange = MECHANISMS[String(body.subarray(2))]?.(server);
      exchange?.next();
      const names = Object.keys(MECHANISMS);
      return Buffer.concat([int16(0), int32(names.length), ...names.map(text16)]);
    },
    [AUTHENTICATE[0]](body) {
      try {
        const answer = exchange?.next(String(body.subarray(4))).value ?? '';
        return Buffer.concat([int16(0), int16(-1), text32(answer)]);
      } catch (error) {
        return Buffer.concat([int16(REFUSED), text16((error as Error).message), text32('')]);
      }
    },
  };
  return (request) => {
    const afterClient = 10 + Math.max(0, request.readInt16BE(8));
    const body = answers[request.readInt16BE(0)]?.(request.subarray(afterClient));
    return Buffer.concat([request.subarray(4, 8), body ?? Buffer.alloc(0)]);
  };
}

/** Listens until the test is over. Returns its port. */
export function startKafka(server: Server): Promise<number> {
  return listen(
    createServer((socket) => {
      const answer = connection(server);
      let received = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        received = Buffer.concat([received, chunk]);
        while (received.length >= 4 && received.length >= 4 + received.readInt32BE(0)) {
          const end = 4 + received.readInt32BE(0);
          const response = answer(received.subarray(4, end));
          socket.write(Buffer.concat([int32(response.length), response]));
          received = received.subarray(end);
        }
      });
      socket.on('error', () => {}); // the client went away
    }),
  );
}
