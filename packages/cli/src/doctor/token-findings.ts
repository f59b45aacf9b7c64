import nodeFileSystem from 'node:fs';

import { isoTime } from '../core/ports/clock.js';
import { run } from '../core/scheduling/steps.js';
import { lookupsOf, read } from '../fs/calls.js';
import { MAX_TOKEN_BYTES } from '../token/read-token.js';
import { DATE_LEEWAY_MS, tokenFromText, type ServiceAccountToken } from '../token/token.js';
import { finding, type Finding } from './finding.js';

/** kubelet replaces any token after this long, ms. */
const LONGEST_PROJECTION_MS = 24 * 3_600_000;

/** The problems of the token in a file; none if the file does not contain a token. */
export async function tokenFindings(
  path: string,
  now: number,
  audiences: readonly string[],
): Promise<Finding[]> {
  const token = await tokenAt(path);
  if (!token) return [];
  const findings: Finding[] = [];
  const own = [token.claims.aud ?? []].flat();
  const missing = audiences.filter((audience) => !own.includes(audience));
  if (missing.length > 0) {
    const message = `the token in "${path}" is for ${own.join(', ') || 'no audience'}, not for ${missing.join(', ')}`;
    findings.push(finding('TOKEN_AUDIENCE', message));
  }
  if (token.expiresAt <= now) {
    findings.push(
      finding(
        'TOKEN_STALE',
        `the token in "${path}" should have been replaced at ${isoTime(token.expiresAt)}`,
      ),
    );
  }
  if (token.aheadMs(now) > DATE_LEEWAY_MS) {
    findings.push(
      finding(
        'TOKEN_FUTURE',
        `the token in "${path}" is dated ${Math.round(token.aheadMs(now) / 1_000)} s ahead`,
      ),
    );
  }
  if (token.issuedAt !== undefined && token.notAfter - token.issuedAt > LONGEST_PROJECTION_MS) {
    findings.push(
      finding('LONG_PROJECTION', `the token in "${path}" is accepted until ${isoTime(token.notAfter)}`),
    );
  }
  return findings;
}

async function tokenAt(path: string): Promise<ServiceAccountToken | undefined> {
  try {
    // Without waiting: /proc has files that are read like pipes.
    const reading = await run(read(lookupsOf(nodeFileSystem, false), path, MAX_TOKEN_BYTES));
    return reading?.bytes && tokenFromText(reading.bytes.toString());
  } catch {
    return undefined;
  }
}
