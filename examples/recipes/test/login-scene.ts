import { randomBytes } from 'node:crypto';
import { join } from 'node:path';

import { credentials, type CredentialFiles } from 'resilient-watcher';
import { KubeletVolume } from 'resilient-watcher/testing';
import { onTestFinished } from 'vitest';

import { rounds, some } from '../../../test/support/rounds.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';
import { keepDoing } from '../../../test/support/tls-clients.js';

/** Which has the new password first. */
export const ORDERS = ['the server first', 'the file first'] as const;
export type Order = (typeof ORDERS)[number];

/** Each of them with both orders; in `npm test` the orders take turns. */
export function withOrders(names: readonly string[]): (readonly [name: string, order: Order])[] {
  return names.flatMap((name, index) => some(ORDERS, 2, index).map((order) => [name, order] as const));
}

const ROTATIONS = rounds(4, 50);

export interface LoginScene {
  readonly login: CredentialFiles;
  /** The path of the password. */
  readonly passwordPath: string;
  /** Writes the files, and waits until they are read. */
  readonly publish: (username: string, password: string) => Promise<void>;
}

export const newPassword = (): string => randomBytes(9).toString('hex');

/** A mounted Secret with a username and a password. */
export function loginScene(): LoginScene {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'login'));
  const login = credentials(volume.directory);
  onTestFinished(() => login.close());
  const publish = async (username: string, password: string): Promise<void> => {
    const previous = login.current;
    volume.publish({ username, password });
    await login.changed({ previous });
  };
  return { login, passwordPath: volume.path('password'), publish };
}

/** Rotates the password of one user under load. Rejects if one request of `work` does. Returns what they returned. */
export async function rotateUnderLoad<T>(
  { publish }: LoginScene,
  order: Order,
  username: string,
  toServer: (password: string) => Promise<unknown>,
  work: () => Promise<T>,
): Promise<T[]> {
  const load = Array.from({ length: 2 }, () => keepDoing(work));
  for (let index = 0; index < ROTATIONS; index += 1) {
    const password = newPassword();
    if (order === 'the server first') await toServer(password);
    await publish(username, password);
    if (order === 'the file first') await toServer(password);
    await work();
  }
  return (await Promise.all(load.map(({ stop }) => stop()))).flat();
}

/** Rotates between two users under load, the server first. Each is locked when the other one is in use. Returns who was served. */
export async function alternateUnderLoad(
  { publish }: LoginScene,
  users: readonly [string, string],
  server: {
    readonly open: (user: string, password: string) => Promise<unknown>;
    readonly lock: (user: string) => Promise<unknown>;
  },
  whoAmI: () => Promise<string | undefined>,
): Promise<(string | undefined)[]> {
  const served: (string | undefined)[] = [];
  const load = Array.from({ length: 4 }, () => keepDoing(whoAmI));
  for (let index = 1; index <= ROTATIONS; index += 1) {
    const next = users[index % 2] ?? '';
    const old = users[(index + 1) % 2] ?? '';
    const password = newPassword();
    await server.open(next, password);
    await publish(next, password);
    const seen = await whoAmI();
    if (seen !== next) throw new Error(`still ${seen ?? 'nobody'} instead of ${next}`);
    served.push(seen);
    await server.lock(old);
  }
  return [...served, ...(await Promise.all(load.map(({ stop }) => stop()))).flat()];
}
