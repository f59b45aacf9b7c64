/** Creates self-signed certificates, so that programs that parse the file can take part. */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

import { isoTime } from '../core/clock.js';

const DAY_MS = 86_400_000;

/** `ecdsa-with-SHA256` and `commonName`, in DER. */
const ECDSA_SHA256 = Buffer.from('300a06082a8648ce3d040302', 'hex');
const COMMON_NAME = Buffer.from('0603550403', 'hex');

/** A key and its certificate, as kubelet writes the `credentialBundlePath` of a pod certificate. */
export function credentialBundle(name: string, now: number): string {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const subject = der(0x30, der(0x31, der(0x30, COMMON_NAME, der(0x0c, Buffer.from(name)))));
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.of(2))), // version 3
    der(0x02, Buffer.concat([Buffer.of(1), randomBytes(8)])),
    ECDSA_SHA256,
    subject,
    der(0x30, time(now - DAY_MS), time(now + DAY_MS)),
    subject,
    publicKey.export({ type: 'spki', format: 'der' }),
  );
  const signature = der(0x03, Buffer.of(0), sign('sha256', body, privateKey));
  const certificate = der(0x30, body, ECDSA_SHA256, signature);
  const lines = certificate.toString('base64').replace(/.{64}(?=.)/g, '$&\n');
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  return `${key}-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), body]);
}

/** UTCTime. */
function time(epochMs: number): Buffer {
  return der(0x17, Buffer.from(`${isoTime(epochMs).slice(2, 19).replace(/\D/g, '')}Z`));
}
