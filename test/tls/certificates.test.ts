import { expect, test } from 'vitest';

import { parseCertificates, parseKey } from '../../src/tls/pem.js';
import { growsTooFast, textWith } from '../support/growth.js';

function ignoringErrors(parse: (bytes: Buffer) => unknown): (text: string) => void {
  return (text) => {
    try {
      parse(Buffer.from(text));
    } catch {
      // The text is no certificate.
    }
  };
}

test.each([
  [
    'certificates',
    '-----BEGIN CERTIFICATE-----\n',
    ignoringErrors((bytes) => parseCertificates('tls.crt', bytes, 'ERR_TLS_PEM')),
  ],
  ['keys', '-----BEGIN PRIVATE KEY-----\n', ignoringErrors((bytes) => parseKey('tls.key', bytes))],
])(
  'many %s without an end are refused in time proportional to the file',
  { timeout: 60_000 },
  (_, begin, parse) => {
    expect(growsTooFast(parse, textWith('', begin, ''))).toBe(false);
  },
);
