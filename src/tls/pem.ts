/** The blocks of a PEM file. Text between them is ignored, as OpenSSL does. */

export interface PemBlock {
  /** Such as `CERTIFICATE`. */
  readonly label: string;
  /** The block with its first and last line, or the part of it that exists. */
  readonly text: string;
  readonly isComplete: boolean;
}

const BEGIN = '-----BEGIN ';
const END = '-----END ';
const DASHES = '-----';

/** Finds the blocks in linear time, whatever the file contains. */
export function pemBlocks(text: string): PemBlock[] {
  const [, ...parts] = text.split(BEGIN);
  return parts.map((part) => {
    const [label = ''] = part.slice(0, 64).split(DASHES, 1);
    const last = `${END}${label}${DASHES}`;
    const end = part.indexOf(END);
    const isComplete = end !== -1 && part.startsWith(last, end);
    return { label, text: `${BEGIN}${isComplete ? part.slice(0, end + last.length) : part}`, isComplete };
  });
}

/** By all labels that OpenSSL knows: others would be trusted unseen. */
export function isCertificate({ label }: PemBlock): boolean {
  return label === 'CERTIFICATE' || label === 'X509 CERTIFICATE' || label === 'TRUSTED CERTIFICATE';
}

/** Of any format: PKCS#8, RSA or elliptic curve. */
export function isPrivateKey({ label }: PemBlock): boolean {
  return label.endsWith('PRIVATE KEY');
}
