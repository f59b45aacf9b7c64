import nodeFileSystem from 'node:fs';
import { readdir } from 'node:fs/promises';

import { isoTime } from '../core/ports/clock.js';
import { told } from '../core/ports/platform-path.js';
import { run } from '../core/scheduling/steps.js';
import { within } from '../fs/absolute-path.js';
import { lookupsOf, read } from '../fs/calls.js';
import { validityOf, type Chain } from './certificates.js';
import { inspectChain, whyExpired } from './chain.js';
import { parseCertificates } from './pem.js';

/** Larger files are bundles of public authorities, or no certificates. */
const MAX_BYTES = 65_536;

/** A mounted certificate has a few files beside it. */
const MAX_FILES = 16;

/** What is wrong with certificates: which have expired, and what only some clients reject. */
export interface CertificateProblems {
  readonly expired: readonly string[];
  readonly warnings: readonly string[];
}

/** What is wrong with the certificates in a file, or in the files of a directory. */
export async function examineCertificates(path: string, now: number): Promise<CertificateProblems> {
  const entries = await readdir(path).catch(() => undefined);
  const files = entries?.slice(0, MAX_FILES).map((entry) => told(within(path, entry))) ?? [path];
  const found = await Promise.all(files.map((file) => problemsIn(file, now)));
  return {
    expired: found.flatMap(({ expired }) => expired),
    warnings: found.flatMap(({ warnings }) => warnings),
  };
}

async function problemsIn(file: string, now: number): Promise<CertificateProblems> {
  const chain = await chainIn(file);
  if (!chain) return { expired: [], warnings: [] };
  if (chain[0].ca) return { expired: [whyExpired(file, chain, now) ?? []].flat(), warnings: [] };
  const { expiresAt } = validityOf(chain[0]);
  const message = `the certificate in "${file}" expired at ${isoTime(expiresAt)}`;
  return {
    expired: expiresAt > now ? [] : [message],
    warnings: inspectChain(file, chain, now).warnings,
  };
}

/** The certificates of a PEM file; undefined if it has none, or one that cannot be parsed. */
async function chainIn(path: string): Promise<Chain | undefined> {
  try {
    // Without waiting: /proc has files that are read like pipes.
    const reading = await run(read(lookupsOf(nodeFileSystem, false), path, MAX_BYTES));
    return reading?.bytes && parseCertificates(path, Buffer.from(reading.bytes), 'ERR_TLS_PEM');
  } catch {
    return undefined;
  }
}
