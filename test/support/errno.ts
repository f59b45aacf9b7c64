import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';

/** An error as Node makes it: it has no names for some numbers, such as ESTALE and EDQUOT, and codes of its own without one. */
export function errno(name: string, path = ''): Error {
  const number = constants.errno[name as keyof typeof constants.errno] as number | undefined;
  const code = number === undefined ? name : getSystemErrorName(-number);
  const error = new Error(`${code}: injected, '${path}'`);
  return Object.assign(error, {
    code,
    ...(number !== undefined && { errno: -number }),
    ...(path && { path }),
  });
}
