import { X509Certificate } from 'node:crypto';
import nodeFileSystem from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

import { isoTime, parseGmtDate } from '../core/clock.js';
import { run } from '../core/steps.js';
import { lookupsOf, read } from '../fs/calls.js';
import { finding, type Finding } from './finding.js';

/** Larger files are bundles of public authorities, or no certificates. */
const MAX_BYTES = 65_536;

/** A mounted certificate has a few files beside it. */
const MAX_FILES = 16;

/** The expired certificates in a file, or in the files of a directory. */
export async function chainFindings(path: string, now: number): Promise<Finding[]> {
  const entries = await readdir(path).catch(() => undefined);
  const files = entries?.slice(0, MAX_FILES).map((entry) => join(path, entry)) ?? [path];
  const found = await Promise.all(
    files.map(async (file) => {
      const certificate = await certificateIn(file);
      // One expired authority among others harms nobody.
      if (!certificate || certificate.ca) return [];
      const expiresAt = parseGmtDate(certificate.validTo);
      const message = `the certificate in "${file}" expired at ${isoTime(expiresAt)}`;
      return expiresAt > now ? [] : [finding('CERTIFICATE_EXPIRED', message)];
    }),
  );
  return found.flat();
}

/** The first certificate of a PEM file. */
async function certificateIn(path: string): Promise<X509Certificate | undefined> {
  try {
    // Without waiting: /proc has files that are read like pipes.
    const reading = await run(read(lookupsOf(nodeFileSystem, false), path, MAX_BYTES));
    const text = reading?.bytes?.toString('latin1') ?? '';
    const begin = text.indexOf('-----BEGIN CERTIFICATE-----');
    return begin < 0 ? undefined : new X509Certificate(text.slice(begin));
  } catch {
    return undefined;
  }
}
