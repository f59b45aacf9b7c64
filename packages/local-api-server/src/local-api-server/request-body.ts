/**
 * Parses bodies of requests: JSON, or, as sent by kubectl, protobuf wrapped with the name of its kind
 * (`generated.proto` of `k8s.io/apimachinery/pkg/runtime` and of `k8s.io/api/authentication/v1`).
 */

/** How one field of a message is read, by its number. */
type Message = Readonly<
  Record<number, { readonly name: string; readonly type: 'text' | 'texts' | 'integer' | Message }>
>;

const MESSAGES: Readonly<Record<string, Message>> = {
  TokenRequest: {
    2: {
      name: 'spec',
      type: {
        1: { name: 'audiences', type: 'texts' },
        3: {
          name: 'boundObjectRef',
          type: {
            1: { name: 'kind', type: 'text' },
            2: { name: 'apiVersion', type: 'text' },
            3: { name: 'name', type: 'text' },
            4: { name: 'uid', type: 'text' },
          },
        },
        4: { name: 'expirationSeconds', type: 'integer' },
      },
    },
  },
  TokenReview: {
    2: {
      name: 'spec',
      type: { 1: { name: 'token', type: 'text' }, 2: { name: 'audiences', type: 'texts' } },
    },
  },
};

/** The body as an object; undefined when there is none. Throws when it cannot be parsed. */
export function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (bytes.subarray(0, 4).toString('latin1') !== 'k8s\0') return JSON.parse(bytes.toString('utf8'));
  let kind = '';
  let raw: Buffer = Buffer.alloc(0);
  for (const { number, value } of fieldsOf(bytes.subarray(4))) {
    if (number === 1) kind = String(read({ 2: { name: 'kind', type: 'text' } }, value as Buffer)['kind']);
    if (number === 2) raw = value as Buffer;
  }
  return read(MESSAGES[kind] ?? {}, raw);
}

function read(message: Message, bytes: Buffer): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const { number, value } of fieldsOf(bytes)) {
    const field = message[number];
    if (!field) continue;
    const { name, type } = field;
    if (type === 'integer') result[name] = value;
    else if (!Buffer.isBuffer(value)) throw new Error(`the field ${name} is not text`);
    else if (type === 'text') result[name] = value.toString('utf8');
    else if (type === 'texts') result[name] = [...((result[name] ?? []) as string[]), value.toString('utf8')];
    else result[name] = read(type, value);
  }
  return result;
}

function* fieldsOf(bytes: Buffer): Generator<{ readonly number: number; readonly value: number | Buffer }> {
  let position = 0;
  const varint = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes.readUInt8(position++);
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  while (position < bytes.length) {
    const tag = varint();
    const number = tag >>> 3;
    if ((tag & 7) === 0) yield { number, value: varint() };
    else if ((tag & 7) === 2) {
      const length = varint();
      if (position + length > bytes.length) throw new Error('the body ends too early');
      yield { number, value: bytes.subarray(position, (position += length)) };
    } else throw new Error('the body is neither JSON nor protobuf of Kubernetes');
  }
}
