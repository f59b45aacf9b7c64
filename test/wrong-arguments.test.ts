/** What people guess wrong, and that the message says what is right: the class they called, its options, what it takes. */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, get } from 'node:https';

import { KubeConfig } from '@kubernetes/client-node';
import { expect, test } from 'vitest';

import { ConfigLoader, FileProvider, VolumeProvider } from 'resilient-watcher/config';
import {
  credentials,
  fetchWithToken,
  healthOf,
  observe,
  ResilientWatcher,
  SecretFile,
  TokenFile,
  TokenRefresher,
  waitFor,
} from 'resilient-watcher';
import { renderKubeconfig, withTokenFile } from 'resilient-watcher/kubernetes';
import { mintTestToken } from 'resilient-watcher/testing';
import {
  httpsAgent,
  serveTls,
  sniCallback,
  spiffeIdOf,
  TlsFiles,
  undiciDispatcher,
} from 'resilient-watcher/tls';

/* eslint-disable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-argument -- as from JavaScript */
const any = (value: unknown): any => value;
const files = (): TlsFiles => new TlsFiles('/etc/tls');
const loader = (): ConfigLoader => new ConfigLoader({ sources: [{ values: {} }] });

type Row = [message: RegExp, call: () => unknown];

test.each<Row>([
  // Options of the class that was called, not of what it is made of.
  [
    /^TlsFiles: unknown option "expiryWarning"; the nearest one is "expiryWarningMs"; known are expiryWarningMs, /,
    () => new TlsFiles('/etc/tls', any({ expiryWarning: 3 })),
  ],
  [/^TlsFiles: unknown option "recursive"/, () => new TlsFiles('/etc/tls', any({ recursive: true }))],
  [
    /^SecretFile: unknown option "encode"; known are parse, trim, encoding, /,
    () => new SecretFile('/etc/password', any({ encode: 'hex' })),
  ],
  [
    /^credentials: unknown option "encode"; known are keys, trim, encoding, /,
    () => credentials('/etc/db', any({ encode: 'hex' })),
  ],
  [
    /^FileProvider: unknown option "interval"; known are parser, optional, merge, expand, maxBytes, /,
    () => new FileProvider('a.yaml', any({ interval: 1 })),
  ],
  [
    /^VolumeProvider: unknown option "parser"; the nearest one is "parsers"; known are parsers, include, ignore, /,
    () => new VolumeProvider('/etc/app', any({ parser: {} })),
  ],
  [
    /^credentials: unknown key "user"; known are username, password$/,
    () => credentials('/etc/db', any({ keys: { user: 'u' } })),
  ],
  [
    /^TlsFiles: unknown path "chain"; known are cert, key, bundle, passphrase, ca, crl; with the option "parse", files have any names$/,
    () => new TlsFiles(any({ cert: 'a', key: 'b', chain: 'c' })),
  ],
  // Two paths instead of one object of paths.
  [/^TlsFiles: options must be an object, got "tls.key"/, () => new TlsFiles('tls.crt', any('tls.key'))],
  [/^SecretFile: options must be an object, got "utf8"/, () => new SecretFile('a', any('utf8'))],
  [
    /^withTokenFile: options must be an object, got "\/token"/,
    () => withTokenFile(new KubeConfig(), any('/token')),
  ],
  // A path instead of what is made from it.
  [/^serveTls: files must be a TlsFiles, got "\/etc\/tls"$/, () => serveTls(createServer(), any('/etc/tls'))],
  [/^httpsAgent: files must be a TlsFiles, got "\/etc\/tls"$/, () => httpsAgent(any('/etc/tls'))],
  [/^httpsAgent: files must be a TlsFiles, got undefined$/, () => httpsAgent(any(undefined))],
  [/^undiciDispatcher: files must be a TlsFiles/, () => undiciDispatcher(any('/etc/tls'))],
  // Options of the clients that would be used instead of the files.
  [/^httpsAgent: "maxCachedSessions" must be 0: /, () => httpsAgent(files(), { maxCachedSessions: 10 })],
  ...['secureContext', 'pfx', 'session'].flatMap((name): Row[] => {
    const expected = new RegExp(`^\\w+: "${name}" is not possible: `);
    const given = { [name]: 'given' };
    const agent = httpsAgent(files());
    return [
      [expected, () => httpsAgent(files(), any(given))],
      [expected, () => once(get('https://localhost:1/', { agent, ...any(given) }), 'response')],
      [expected, () => undiciDispatcher(files(), any({ connect: given }))],
      [expected, () => undiciDispatcher(files(), any({ tls: given }))],
    ];
  }),
  [
    /^sniCallback: "a.example" must be a TlsFiles, got "\/etc\/tls"$/,
    () => sniCallback(any({ 'a.example': '/etc/tls' })),
  ],
  [/^fetchWithToken: source must be .*a TokenFile.*got "\/token"/, () => fetchWithToken(any('/token'))],
  // Credentials instead of what is meant are not shown.
  [/^fetchWithToken: .*got "\[redacted\]"$/, () => fetchWithToken(any(mintTestToken()))],
  [
    /"server" must be an http\(s\) URL, got "https:\/\/admin:\[redacted\]@host"$/,
    () => renderKubeconfig({ server: 'https://admin:hunter2@host', token: 'x' }),
  ],
  [
    /"sinks" must be .*fileSink\(path\)/,
    () => new TokenRefresher(any({ client: { requestToken: () => {} }, sinks: ['/out'] })),
  ],
  [
    /^withTokenFile: kubeConfig must be a KubeConfig of @kubernetes\/client-node, got "\/token"$/,
    () => withTokenFile(any('/token')),
  ],
  // The other way round, or without TLS.
  [
    /^serveTls: server must be .*node:https.*got a TlsFiles$/,
    () => serveTls(any(files()), any(createServer())),
  ],
  [/^serveTls: server must be .*node:https.*got a Server$/, () => serveTls(any(createHttpServer()), files())],
  // Sources without a provider.
  [
    /^ConfigLoader: sources\[0\] must be .*; got "app.yaml"; a file is { provider: new FileProvider\(path\) }/,
    () => new ConfigLoader(any({ sources: ['app.yaml'] })),
  ],
  [/got a FileProvider/, () => new ConfigLoader(any({ sources: [new FileProvider('app.yaml')] }))],
  [/got { file }/, () => new ConfigLoader(any({ sources: [{ file: 'app.yaml' }] }))],
  [
    /^ConfigLoader: sources\[0\]\.env: unknown option "prefx"; the nearest one is "prefix"; known are prefix, delimiter, transform, allowEmpty, env, files$/,
    () => new ConfigLoader(any({ sources: [{ env: { prefx: 'APP_' } }] })),
  ],
  [
    /^ConfigLoader: sources\[0\]\.env: option "prefix" must be a string, got null$/,
    () => new ConfigLoader(any({ sources: [{ env: { prefix: null } }] })),
  ],
  [
    /^ConfigLoader: sources\[1\]\.env: unknown option "env"; known are prefix, delimiter, transform, allowEmpty$/,
    () =>
      new ConfigLoader(
        any({ sources: [{ values: {} }, { provider: new FileProvider('a'), env: { prefix: '', env: {} } }] }),
      ),
  ],
  [
    /^ConfigLoader: sources\[0\]\.args: unknown option "option"; the nearest one is "options"; known are args, options, delimiter$/,
    () => new ConfigLoader(any({ sources: [{ args: { option: {} } }] })),
  ],
  [
    /^ConfigLoader: sources\[0\]: unknown key "nam"; the nearest one is "name"; known are values, name, at$/,
    () => new ConfigLoader(any({ sources: [{ values: {}, nam: 'defaults' }] })),
  ],
  [
    /^ConfigLoader: sources\[0\]: unknown key "parser"; known are provider, env, at$/,
    () => new ConfigLoader(any({ sources: [{ provider: new FileProvider('a'), parser: {} }] })),
  ],
  // Listeners and observers.
  [
    /^ConfigLoader\.select: unknown option "imediate"; the nearest one is "immediate"; known are immediate$/,
    () => loader().select(any(String), any(String), any({ imediate: true })),
  ],
  [
    /^ConfigLoader\.select: argument "listener" must be a function, got undefined$/,
    () => loader().select(any(String), any(undefined)),
  ],
  [
    /^observe: unknown option "pont"; the nearest one is "point"; known are point, started, settled$/,
    () => observe(any({ pont() {} })),
  ],
  [/^observe: option "point" must be a function, got "log"$/, () => observe(any({ point: 'log' }))],
  [/^healthOf: every argument must be a component/, () => healthOf(any({}))],
  [/^spiffeIdOf: socket must be that of a connection, got undefined$/, () => spiffeIdOf(any(undefined))],
  [/^SecretFile: path must be/, () => new SecretFile(any(undefined))],
  [/^ResilientWatcher: path must be/, () => new ResilientWatcher(any(undefined))],
])('what is wrong is said: %s', async (message, call) => {
  await expect(async () => await call()).rejects.toThrow(message);
});

test('a path that is a file of the pair, and not the directory, is said to be one', async () => {
  await using pair = new TlsFiles(import.meta.filename);
  await expect(pair.get()).rejects.toThrow(
    /is a file without a private key; TlsFiles takes a directory, a credential bundle, or { cert, key, ca }/,
  );
});

test('a token file says why there is no token', async () => {
  await using missing = new TokenFile('no/such/token');
  await expect(missing.get()).rejects.toThrow(`There is no token yet in "${process.cwd()}/no/such/token": `);
  await using other = new TokenFile(import.meta.filename);
  await expect(other.get()).rejects.toThrow(/There is no token yet in ".*": .*JWT/);
});

test('waitFor() takes options in place of the predicate', async () => {
  await expect(waitFor('no/such/file', { timeoutMs: 1 })).rejects.toThrow(
    /after 1 ms; it (?:is missing|has not been read yet)$/,
  );
  await expect(waitFor(import.meta.dirname, () => false, { timeoutMs: 1 })).rejects.toThrow(
    /it is a directory$|it has not been read yet$/,
  );
});
