/**
 * The SHA-256 digest of the data, in hexadecimal. `node:crypto` is loaded on the first call, because loading it takes
 * longer than loading any of the packages used here.
 */
export function sha256(data: string | Uint8Array): string {
  return process.getBuiltinModule('node:crypto').hash('sha256', data, 'hex');
}
