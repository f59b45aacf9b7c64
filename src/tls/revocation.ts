/**
 * What revocation lists say, which Node.js does not tell. OpenSSL decides in the handshake who is admitted. As soon as
 * there is a list, it refuses every certificate whose chain has an authority without a list that is valid now:
 *
 * | of an authority of the bundle, there is    | OpenSSL refuses          | `warning`                       |
 * |--------------------------------------------|--------------------------|---------------------------------|
 * | a valid list                               | what the newest one lists| shortly before its end          |
 * | no list                                    | all of its certificates  | at once                         |
 * | only a list that has expired, or has not   | all of its certificates  | at once                         |
 * | begun                                      |                          |                                 |
 */
import type { X509Certificate } from 'node:crypto';

import { isoTime, parseTimestamp } from '../core/ports/clock.js';
import { subjectName } from './certificates.js';
import type { Oddities } from './chain.js';
import { elementsIn, headerOf, INTEGER, SEQUENCE } from './der.js';

/** A list of one authority. */
export interface RevocationList {
  readonly pem: string;
  /** The values of its name. */
  readonly name: string;
  /** The same in lower case: some authorities write it in two ways. */
  readonly issuer: string;
  /** Epoch ms. */
  readonly thisUpdate: number;
  /** When it expires, epoch ms; `Infinity` if it never does. */
  readonly nextUpdate: number;
  /** With the issuer. */
  readonly serialNumbers: readonly string[];
}

/** The lists in use. */
export interface Revocation extends Oddities {
  readonly lists: readonly RevocationList[];
  /** PEM, one for each, because Node.js reads only the first one of a text. */
  readonly pem: string[];
  /** By the lists that have begun: issuer and serial number. */
  readonly revoked: ReadonlySet<string>;
  /** When the first authority has no valid list any more, epoch ms. */
  readonly expiresAt: number;
}

/** What is left of the lifetime of a list when it is reported. Some authorities publish the next one shortly before. */
const LEFT = 1 / 20;
const MAX_NAMED = 3;

const [UTC_TIME, GENERALIZED_TIME] = [0x17, 0x18];
const TIME = /^(\d\d)?(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/;

/** Undefined if it is no list, or is cut off. */
export function parseList(der: Buffer): RevocationList | undefined {
  const [list] = elementsIn(der);
  if (!list || headerOf(der).end > der.length) return undefined;
  const parts = elementsIn(elementsIn(list.content)[0]?.content ?? list.content);
  if (parts[0]?.tag === INTEGER) parts.shift();
  const [, named, begin, ...others] = parts;
  const hasEnd = others[0]?.tag === UTC_TIME || others[0]?.tag === GENERALIZED_TIME;
  const thisUpdate = timeIn(begin?.content);
  const nextUpdate = hasEnd ? timeIn(others.shift()?.content) : Infinity;
  if (!named || Number.isNaN(thisUpdate + nextUpdate)) return undefined;
  const name = nameIn(named.content);
  const issuer = name.toLowerCase();
  const entries = others[0]?.tag === SEQUENCE ? elementsIn(others[0].content) : [];
  const serialNumbers = entries.map(({ content }) => {
    const { start, end } = headerOf(content);
    return `${issuer}:${content.toString('hex', start, end)}`;
  });
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  const pem = ['-----BEGIN X509 CRL-----', ...lines, '-----END X509 CRL-----\n'].join('\n');
  return { pem, name, issuer, thisUpdate, nextUpdate, serialNumbers };
}

/** @param authorities those in use; without any, the server or client has its own */
export function inspectLists(
  path: string,
  lists: readonly RevocationList[],
  authorities: readonly X509Certificate[],
  now: number,
): Revocation {
  const names = new Map(
    authorities.map((authority) => [subjectIn(authority.raw).toLowerCase(), subjectName(authority)]),
  );
  const begun = lists.filter(({ thisUpdate }) => thisUpdate <= now);
  // The last one of each issuer, if possible one that has begun.
  const latest = new Map<string, RevocationList>();
  const byEnd = (one: RevocationList, other: RevocationList): number => one.nextUpdate - other.nextUpdate;
  for (const list of [...lists].sort(byEnd).concat([...begun].sort(byEnd))) latest.set(list.issuer, list);
  const missing = [...names].filter(([issuer]) => !latest.has(issuer)).map(([, name]) => name);
  const warnings: string[] = [];
  const moments = lists.map(({ thisUpdate }) => thisUpdate);
  if (missing.length > 0) {
    const named = [...missing.slice(0, MAX_NAMED), ...(missing.length > MAX_NAMED ? ['…'] : [])].join('; ');
    warnings.push(
      `"${path}" has no revocation list of ${named}; OpenSSL refuses every certificate of such a CA`,
    );
  }
  for (const [issuer, { name, thisUpdate, nextUpdate }] of latest) {
    const soonAt = nextUpdate - (nextUpdate - thisUpdate) * LEFT;
    moments.push(soonAt, nextUpdate);
    const when = whyOdd(thisUpdate, soonAt, nextUpdate, now);
    const what = `The revocation list of ${names.get(issuer) ?? name} in "${path}"`;
    if (when !== undefined) warnings.push(`${what} ${when}, OpenSSL refuses every certificate of this CA`);
  }
  return {
    lists,
    pem: lists.map(({ pem }) => pem),
    revoked: new Set(begun.flatMap(({ serialNumbers }) => serialNumbers)),
    expiresAt: Math.min(...[...latest.values()].map(({ nextUpdate }) => nextUpdate)),
    warnings,
    from: Math.max(...moments.filter((moment) => moment <= now)),
    until: Math.min(...moments.filter((moment) => moment > now)),
  };
}

function whyOdd(begin: number, soonAt: number, end: number, now: number): string | undefined {
  if (begin > now) return `is not valid before ${isoTime(begin)}; until then`;
  if (end <= now) return `expired at ${isoTime(end)}; until there is a newer one`;
  if (soonAt <= now) return `expires at ${isoTime(end)}, and has not been replaced; from then on`;
  return undefined;
}

function timeIn(bytes: Buffer | undefined): number {
  const [, century, year = '', month, day, hours, minutes, seconds] = TIME.exec(String(bytes)) ?? [];
  const full = `${century ?? (Number(year) < 50 ? '20' : '19')}${year}`;
  return parseTimestamp(`${full}-${month}-${day}T${hours}:${minutes}:${seconds}Z`);
}

/** The values of a distinguished name. */
function nameIn(bytes: Buffer): string {
  const values = elementsIn(bytes).flatMap((set) =>
    elementsIn(set.content).map(({ content }) => String(elementsIn(content)[1]?.content)),
  );
  return values.join(', ').replace(/\p{Cc}/gu, ' ');
}

/** Of a certificate: after its algorithm, issuer and dates. */
function subjectIn(certificate: Buffer): string {
  const [body] = elementsIn(elementsIn(certificate)[0]?.content ?? certificate);
  const parts = elementsIn(body?.content ?? certificate).filter(({ tag }) => tag === SEQUENCE);
  return nameIn(parts[3]?.content ?? certificate);
}
