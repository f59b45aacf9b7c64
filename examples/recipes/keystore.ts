// A keystore in PKCS#12, as openssl, keytool, pk12util, certtool, Python and cert-manager write them, with node-forge.
import { createPrivateKey, pbkdf2Sync, X509Certificate } from 'node:crypto';

import forge from 'node-forge';
import type { TlsParser } from 'resilient-watcher/tls';

// By OpenSSL, which takes a tenth of the time, and with passphrases in UTF-8, which node-forge takes for Latin-1.
Object.assign(forge.pkcs5, {
  pbkdf2: (password: string, salt: string, rounds: number, bytes: number, digest: { algorithm: string }) => {
    if (rounds > 1_000_000) throw new Error(`the keystore asks for ${rounds} rounds`);
    return pbkdf2Sync(password, Buffer.from(salt, 'latin1'), rounds, bytes, digest.algorithm).toString(
      'latin1',
    );
  },
});

const { certBag, keyBag, pkcs8ShroudedKeyBag } = forge.pki.oids;
const derOf = (value: forge.asn1.Asn1): Buffer => Buffer.from(forge.asn1.toDer(value).getBytes(), 'latin1');

/** The first key with its certificate, and all other certificates as its issuers. None of them is trusted. */
export const pkcs12: TlsParser = ({ keystore, ca }, { passphrase = '' }) => {
  if (!keystore) throw new Error('there is no file "keystore"');
  const der = forge.asn1.fromDer(keystore.toString('latin1'), false);
  const { safeContents } = forge.pkcs12.pkcs12FromAsn1(der, false, passphrase);
  const bags = safeContents.flatMap(({ safeBags }) => safeBags);
  const keys = bags.flatMap(({ type, key, asn1 }) => {
    if (type !== keyBag && type !== pkcs8ShroudedKeyBag) return [];
    if (key) return createPrivateKey(forge.pki.privateKeyToPem(key));
    return createPrivateKey({ key: derOf(asn1), format: 'der', type: 'pkcs8' });
  });
  const certificates = bags.flatMap(({ type, cert, asn1 }) =>
    type === certBag ? new X509Certificate(derOf(cert ? forge.pki.certificateToAsn1(cert) : asn1)) : [],
  );
  const [key] = keys;
  const leaf = key && certificates.find((certificate) => certificate.checkPrivateKey(key));
  if (!leaf) throw new Error(`no key with its certificate; certificates in it: ${certificates.length}`);
  const chain = [leaf, ...certificates.filter((certificate) => certificate !== leaf)];
  return { cert: chain.join(''), key: key.export({ type: 'pkcs8', format: 'pem' }), ca };
};
