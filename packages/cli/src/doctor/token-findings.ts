import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

import { tokenFromText, type ServiceAccountToken } from 'resilient-watcher';
import { isoTime } from 'resilient-watcher/internal';

import { finding, type Finding } from './finding.js';

/** No token is larger. */
const MAX_BYTES = 65_536;

/** How far the clocks of two machines usually differ at most, ms. */
const DATE_LEEWAY_MS = 60_000;

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
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_BYTES), 0, MAX_BYTES, 0);
      return tokenFromText(buffer.toString('utf8', 0, bytesRead));
    } finally {
      await file.close();
    }
  } catch {
    return undefined;
  }
}
