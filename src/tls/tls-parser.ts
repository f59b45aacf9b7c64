/** The option `parse` of `TlsFiles`: files of another format become PEM. */
import type { Clock } from '../core/ports/clock.js';
import { describe } from '../core/options/options.js';
import { runParser, type Parsing } from '../watch/run-parser.js';
import { TlsError } from './tls-error.js';
import type { TlsPlace, TlsPlaces } from './tls-paths.js';
import { bytesOf, passphraseIn } from './tls-set.js';

/**
 * A set in PEM: `cert` and `key`, or `ca`, or all of them, with or without `crl`. The certificate comes first in
 * `cert`, then its issuers.
 */
export interface TlsPem {
  readonly cert?: string | Uint8Array | undefined;
  /** May be protected by the passphrase in the file named `passphrase`. */
  readonly key?: string | Uint8Array | undefined;
  /** Without it, the last CA bundle stays in use. */
  readonly ca?: string | Uint8Array | undefined;
  /** Revocation lists; without them, the last ones stay in use. */
  readonly crl?: string | Uint8Array | undefined;
}

/** What a `TlsParser` is given beside the files. */
export interface TlsParsing extends Parsing {
  /** The text of the file named `passphrase`, without one line break at its end; undefined if there is none. */
  readonly passphrase: string | undefined;
}

/**
 * Turns files into PEM: keystores in PKCS#12 or JKS, or a bundle in JSON. It is called once for each state of the files.
 * @param files the contents of each file, by its name in `TlsFiles({ name: path })`, or by its name in the directory.
 */
export type TlsParser = (
  files: Readonly<Record<string, Buffer>>,
  parsing: TlsParsing,
) => TlsPem | Promise<TlsPem>;

const PARTS = ['cert', 'key', 'ca', 'crl'] as const;

/** What `parsePlaces` needs to know. */
interface Surroundings {
  /** For messages about all files. */
  readonly path: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * @param places the files by name
 * @throws {TlsError} `ERR_TLS_PARSE` if the parser fails, takes too long, or returns something else.
 */
export async function parsePlaces(
  parser: TlsParser,
  places: TlsPlaces,
  { path, clock, signal }: Surroundings,
): Promise<TlsPlaces> {
  const { passphrase } = places;
  const secret = passphrase && passphraseIn(passphrase);
  const named = Object.entries(places as Record<string, TlsPlace>).map(
    ([name, place]) => [name, Buffer.from(bytesOf(place))] as const,
  );
  if (named.length === 0) throw new TlsError('ERR_TLS_MISSING', `There is no file in "${path}"`);
  const fault = (why: string, cause?: Error): TlsError =>
    new TlsError('ERR_TLS_PARSE', `The option "parse" ${why}, for "${path}"`, cause && { cause });
  const texts = [secret ?? '', ...named.map(([, bytes]) => bytes.toString())];
  const parsed: unknown = await runParser(
    (ending) => parser(Object.fromEntries(named), { passphrase: secret, signal: ending }),
    { clock, signal, texts, fault },
  );
  if (typeof parsed !== 'object' || parsed === null) {
    throw fault(`must return { cert, key, ca } in PEM, got ${describe(parsed)}`);
  }
  const pem = parsed as Readonly<Record<string, unknown>>;
  const found = PARTS.filter((name) => pem[name] !== undefined);
  const odd = found.find((name) => typeof pem[name] !== 'string' && !(pem[name] instanceof Uint8Array));
  if (odd !== undefined) throw fault(`must return "${odd}" in PEM`);
  const isWhole = (pem['cert'] === undefined) === (pem['key'] === undefined);
  if (!isWhole || !found.some((name) => name !== 'crl')) {
    const wanted = 'cert and key, or ca, or all of them, with or without crl';
    throw fault(`must return ${wanted}; got ${found.join(', ') || 'none'}`);
  }
  const placeOf = (name: string): TlsPlace => ({
    path: `${name} as parsed from ${path}`,
    file: Buffer.from(pem[name] as string),
  });
  return { ...Object.fromEntries(found.map((name) => [name, placeOf(name)])), passphrase };
}
