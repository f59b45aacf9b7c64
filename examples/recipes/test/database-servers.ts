/** Real servers of the system's packages, where they are installed. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { onTestFinished } from 'vitest';

import { freePort } from '../../../test/support/free-port.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

function postgresBinaries(): string | undefined {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root).sort() : [];
  return versions
    .map((version) => join(root, version, 'bin'))
    .findLast((bin) => existsSync(join(bin, 'initdb')));
}

function idOf(user: string, kind: '-u' | '-g'): number | undefined {
  try {
    return Number(
      execFileSync('id', [kind, user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
    );
  } catch {
    return undefined;
  }
}

/** Why the tests with PostgreSQL cannot run; undefined when they can. */
export const withoutPostgres =
  postgresBinaries() === undefined || idOf('postgres', '-u') === undefined
    ? 'PostgreSQL is not installed (apt-get install postgresql)'
    : undefined;

/** Why the tests with MariaDB cannot run; undefined when they can. */
export const withoutMariadb =
  existsSync('/usr/sbin/mariadbd') && idOf('mysql', '-u') !== undefined
    ? undefined
    : 'MariaDB is not installed (apt-get install mariadb-server)';

/** Why the tests with Redis cannot run; undefined when they can. */
export const withoutRedis = existsSync('/usr/bin/redis-server')
  ? undefined
  : 'Redis is not installed (apt-get install redis-server)';

/** Resolves with what stops it, when it is ready. */
export function start(
  command: string,
  args: readonly string[],
  options: { uid?: number | undefined; gid?: number | undefined },
  ready: RegExp,
  signal: NodeJS.Signals = 'SIGQUIT',
): Promise<() => Promise<void>> {
  const child = spawn(command, args, {
    ...options,
    stdio: ['ignore', 'pipe', 'pipe'],
  } as never) as ChildProcess;
  const stop = async (): Promise<void> => {
    child.kill(signal);
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  let output = '';
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk) => {
        output += String(chunk);
        if (ready.test(output)) resolve(stop);
      });
    }
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`${command} ended: ${output}`)));
  });
}

/** A PostgreSQL server that wants a password (SCRAM) from every role but `postgres`. */
export async function startPostgres(): Promise<{ port: number; stop: () => Promise<void> }> {
  const bin = postgresBinaries() ?? '';
  const directory = mkdtempSync(join(tmpdir(), 'postgres-'));
  const asRoot = process.getuid?.() === 0;
  const [uid, gid] = asRoot ? [idOf('postgres', '-u'), idOf('postgres', '-g')] : [];
  if (uid !== undefined && gid !== undefined) chownSync(directory, uid, gid);
  const data = join(directory, 'data');
  const options = { uid, gid };
  execFileSync(
    join(bin, 'initdb'),
    ['-D', data, '-U', 'postgres', '--auth-local=reject', '--auth-host=trust', '-N', '-E', 'UTF8'],
    { ...options, stdio: 'ignore', cwd: directory },
  );
  writeFileSync(
    join(data, 'pg_hba.conf'),
    'host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n',
  );
  const port = await freePort();
  const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'];
  const stopServer = await start(
    join(bin, 'postgres'),
    ['-D', data, ...settings.flatMap((setting) => ['-c', setting])],
    options,
    /ready to accept connections/,
  );
  const stop = async (): Promise<void> => {
    await stopServer();
    rmSync(directory, { recursive: true });
  };
  return { port, stop };
}

/** A MariaDB server. The administrator is root, at the socket. */
export async function startMariadb(): Promise<{
  port: number;
  socketPath: string;
  stop: () => Promise<void>;
}> {
  // The path of a socket is short.
  const directory = mkdtempSync('/tmp/mariadb-');
  const [uid, gid] = process.getuid?.() === 0 ? [idOf('mysql', '-u'), idOf('mysql', '-g')] : [];
  if (uid !== undefined && gid !== undefined) chownSync(directory, uid, gid);
  const data = `--datadir=${join(directory, 'data')}`;
  const options = { uid, gid };
  execFileSync(
    'mariadb-install-db',
    ['--no-defaults', data, '--auth-root-authentication-method=normal', '--skip-test-db'],
    { ...options, stdio: 'ignore', cwd: directory },
  );
  const [port, socketPath] = [await freePort(), join(directory, 'socket')];
  const stopServer = await start(
    '/usr/sbin/mariadbd',
    ['--no-defaults', data, `--port=${port}`, `--socket=${socketPath}`, '--bind-address=127.0.0.1'],
    options,
    /ready for connections/,
    'SIGTERM',
  );
  const stop = async (): Promise<void> => {
    await stopServer();
    rmSync(directory, { recursive: true });
  };
  return { port, socketPath, stop };
}

/** A Redis server without persistence, which ends with the test. Returns its port. */
export async function startRedis(...more: string[]): Promise<number> {
  const port = await freePort();
  // By default, 10,000 above the port, which may be too high.
  const args = [
    '--port',
    String(port),
    '--cluster-port',
    String(await freePort()),
    '--save',
    '',
    '--appendonly',
    'no',
    '--dir',
    temporaryDirectory(),
  ];
  args.push(...more);
  const stop = await start(
    'redis-server',
    [...args, '--bind', '127.0.0.1'],
    {},
    /Ready to accept connections/,
  );
  onTestFinished(stop);
  return port;
}
