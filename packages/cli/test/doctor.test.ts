/** `doctor` of paths, tokens, certificates and manifests. */
import { spawnSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import type { Diagnosis } from '@resilient-watcher/cli/doctor';
import { CertificateSigner } from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { describe, expect, test } from 'vitest';

import { createAuthority, createServerPair } from '../../../test/support/certificates.js';
import { runMain, type CommandLineOutcome } from './support/command-line.js';
import { linuxOnly } from '../../../test/support/namespace.js';
import { RevokingAuthority } from '../../../test/support/revoking-authority.js';
import { temporaryDirectory } from '../../../test/support/temporary-directory.js';

linuxOnly();

/** What it finds at a path, by id. */
async function doctor(path: string): Promise<{ code: number; ids: string[]; page: Diagnosis }> {
  const { code, stdout, stderr } = await runMain(['doctor', path, '--json']);
  if (stdout === '') throw new Error(stderr);
  const page = JSON.parse(stdout) as Diagnosis;
  return { code, ids: page.findings.map(({ id }) => id), page };
}

/** What it says of the objects in a file. */
function lint(manifest: string): Promise<CommandLineOutcome> {
  const file = join(temporaryDirectory(), 'm.yaml');
  writeFileSync(file, manifest);
  return runMain(['doctor', '--manifest', file]);
}

/** The part of a JSON Web Token that nothing here verifies is left out. */
function token(claims: Readonly<Record<string, unknown>>): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}.${Buffer.from('sig').toString('base64url')}`;
}

function volume(): KubeletVolume {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ n: '0' });
  return mounted;
}

test('a working volume has no findings, exit code 0, and shows its links, revision and age', async () => {
  const mounted = volume();
  const { code, ids, page } = await doctor(mounted.path('n'));
  expect([code, ids]).toEqual([0, []]);
  expect(page).toMatchObject({
    revision: mounted.revision,
    links: [{ target: '..data/n' }, { target: mounted.revision }],
  });
  const text = (await runMain(['doctor', mounted.path('n')])).stdout;
  expect(text).toMatch(
    /link .* -> \.\.data\/n\n[^]*revision {2}\.\.[^]*changed .* ago\n[^]*nothing prevents updates/,
  );
});

describe('paths and tokens', () => {
  const hour = 3_600;
  const now = (): number => Math.floor(Date.now() / 1_000);
  const cases: Record<
    string,
    { make: (path: string) => void; expected: readonly [number, readonly string[]] }
  > = {
    'nothing there yet': { make: () => undefined, expected: [4, ['MISSING']] },
    'a link to nothing': { make: (path) => symlinkSync('nowhere', path), expected: [4, ['DANGLING']] },
    'a link to itself': { make: (path) => symlinkSync(path, path), expected: [3, ['WRONG_TARGET']] },
    'a pipe': { make: (path) => void spawnSync('mkfifo', [path]), expected: [3, ['WRONG_TARGET']] },
    'an empty directory': { make: (path) => mkdirSync(path), expected: [0, []] },
    'a file from the future': {
      make: (path) => {
        writeFileSync(path, '');
        utimesSync(path, now() + hour, now() + hour);
      },
      // Nobody can set the change time, which is what counts.
      expected: [0, []],
    },
    'a fresh token': {
      make: (path) => writeFileSync(path, token({ iat: now(), exp: now() + hour })),
      expected: [0, []],
    },
    'a token that has expired': {
      make: (path) => writeFileSync(path, token({ iat: now() - 2 * hour, exp: now() - hour })),
      expected: [4, ['TOKEN_STALE']],
    },
    'a token from the future': {
      make: (path) => writeFileSync(path, token({ iat: now() + hour, exp: now() + 2 * hour })),
      expected: [4, ['TOKEN_FUTURE']],
    },
    'a token that is accepted for a year': {
      make: (path) => writeFileSync(path, token({ iat: now(), exp: now() + 365 * 24 * hour })),
      expected: [0, ['LONG_PROJECTION']],
    },
  };
  test.each(Object.entries(cases))('%s', async (_, { make, expected }) => {
    const path = join(temporaryDirectory(), 'target');
    make(path);
    const { code, ids } = await doctor(path);
    expect([code, ids]).toEqual(expected);
  });
});

test.each<[string, readonly string[], string]>([
  ['app.yaml', ['app.yml', 'other'], 'app.yaml" does not exist; there is "app.yml"'],
  ['APP.yaml', ['app.yaml'], 'APP.yaml" does not exist; there is "app.yaml"'],
  ['config.json', ['config.yaml'], 'config.json" does not exist; there is "config.yaml"'],
  ['nothing', ['b', 'a'], 'nothing" does not exist; there are "a", "b"'],
  ['nothing', Array.from({ length: 20 }, (_, at) => `key-${at}`), 'nothing" does not exist'],
  ['a/b', [], 'a" does not exist; '],
])('%s is missing beside %j', async (name, keys, says) => {
  const directory = temporaryDirectory();
  const mounted = new KubeletVolume(join(directory, 'volume'));
  mounted.publish(Object.fromEntries(keys.map((key) => [key, ''])));
  const { ids, page } = await doctor(mounted.path(name));
  expect(ids).toEqual(['MISSING']);
  const message = page.findings[0]?.message ?? '';
  expect(message).toContain(says);
  if (keys.length === 0) expect(message).toMatch(/volume" is empty$/);
  else expect(message.endsWith(says)).toBe(true);
});

test('a link of a volume whose key is gone says what the revision has', async () => {
  const mounted = new KubeletVolume(join(temporaryDirectory(), 'volume'));
  mounted.publish({ 'app.yml': '' });
  symlinkSync('..data/app.yaml', mounted.path('app.yaml'));
  const { ids, page } = await doctor(mounted.path('app.yaml'));
  expect(ids).toEqual(['DANGLING']);
  expect(page.findings[0]?.message).toMatch(/, which does not exist; there is "app\.yml"$/);
});

test('--manifest lints files or stdin, and its exit code is that of the worst finding', async () => {
  const manifest = 'kind: ConfigMap\nmetadata: { name: m }\nimmutable: true\n';
  const found = await runMain(['doctor', '--manifest', '-'], { input: manifest });
  expect([found.code, found.stdout]).toEqual([3, expect.stringMatching(/never +IMMUTABLE\n.*ConfigMap\/m/)]);
  const file = join(temporaryDirectory(), 'm.yaml');
  writeFileSync(file, manifest.replace('true', 'false'));
  expect(await runMain(['doctor', '--manifest', file])).toMatchObject({
    code: 0,
    stdout: 'nothing found\n',
  });
  const immutable = join(temporaryDirectory(), 'immutable.yaml');
  writeFileSync(immutable, manifest);
  const both = await runMain(['doctor', '--manifest', immutable, '--manifest', file]);
  expect([both.code, both.stdout]).toEqual([3, expect.stringContaining('IMMUTABLE')]);
  writeFileSync(file, 'kind: X\na: {{ .Values.a }');
  const broken = await runMain(['doctor', '--manifest', file]);
  expect([broken.code, broken.stderr]).toEqual([
    2,
    expect.stringMatching(
      /is not YAML: [a-z ]+ at line 2, column \d+; render a chart with `helm template` first/,
    ),
  ]);
  const empty = await runMain(['doctor', '--manifest', '-'], { input: '' });
  expect([empty.code, empty.stderr]).toEqual([2, expect.stringContaining('stdin contains no manifest')]);
  for (const [path, says] of [
    [`${file}.not`, 'm.yaml.not does not exist'],
    [dirname(file), 'is a directory; name the files in it'],
  ] as const) {
    const refused = await runMain(['doctor', '--manifest', path]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(says)]);
  }
});

test('--audience: a token for others is never accepted, and one for several is', async () => {
  const path = join(temporaryDirectory(), 'token');
  const now = Math.trunc(Date.now() / 1_000);
  writeFileSync(path, token({ iat: now, exp: now + 600, aud: ['vault', 'api'] }));
  const idsFor = async (audience: string): Promise<unknown> => {
    const { code, stdout } = await runMain(['doctor', path, '--json', '--audience', audience]);
    return [code, (JSON.parse(stdout) as Diagnosis).findings.map(({ id }) => id)];
  };
  expect(await idsFor('vault')).toEqual([0, []]);
  expect(await idsFor('other')).toEqual([3, ['TOKEN_AUDIENCE']]);
});

test('an expired certificate is found in its file and in its directory', async () => {
  const expired = { notBefore: new Date(Date.now() - 2e9), notAfter: new Date(Date.now() - 1e9) };
  const authority = createAuthority('root');
  const directory = join(temporaryDirectory(), 'tls');
  mkdirSync(directory);
  writeFileSync(join(directory, 'ca.crt'), authority.cert);
  expect((await doctor(directory)).ids).toEqual([]);
  const { cert, key } = createServerPair(authority, expired);
  writeFileSync(join(directory, 'tls.crt'), cert);
  writeFileSync(join(directory, 'tls.key'), key);
  for (const path of [directory, join(directory, 'tls.crt')]) {
    const { code, ids } = await doctor(path);
    expect([code, ids]).toEqual([4, ['CERTIFICATE_EXPIRED']]);
  }
});

const revoking = new RevokingAuthority('root');

test('a revocation list that has expired is found, and one that is broken', async () => {
  const directory = temporaryDirectory();
  const file = join(directory, 'ca.crl');
  writeFileSync(file, revoking.list([]));
  expect((await doctor(file)).ids).toEqual([]);
  writeFileSync(file, revoking.list([], { from: Date.now() - 2e9, until: Date.now() - 1e9 }));
  const { ids, page } = await doctor(`${directory}/`);
  expect(ids).toEqual(['CERTIFICATE_EXPIRED']);
  expect(page.findings[0]?.message).toContain(
    `The revocation list of Example, Inc., root in "${file}" expired`,
  );
  writeFileSync(file, 'broken');
  expect((await doctor(file)).ids).toEqual(['CERTIFICATE_REJECTED']);
});

const signer = new CertificateSigner();
const [one, other] = [signer.issue({ dnsNames: ['a'] }), signer.issue({ dnsNames: ['a'] })];
const der = new X509Certificate(one.chain).raw;
const later = signer.issue({ dnsNames: ['a'], notBefore: Date.now() + 3_600_000 });
const locked = createPrivateKey(one.key).export({
  type: 'pkcs8',
  format: 'pem',
  cipher: 'aes-256-cbc',
  passphrase: 'x',
});

test.each<[string, Record<string, string | Buffer>, RegExp | undefined]>([
  ['a pair', { 'tls.crt': one.chain, 'tls.key': one.key, 'ca.crt': '\n' }, undefined],
  ['a locked key', { 'tls.crt': one.chain, 'tls.key': locked }, undefined],
  ['a key of another pair', { 'tls.crt': one.chain, 'tls.key': other.key }, /is not that of the first cert/],
  ['the same by other names', { 'a.crt': one.chain, 'a.key': other.key }, /is not that of the first cert/],
  ['a certificate without its key', { 'tls.crt': one.chain }, /no file ".*tls\.key"/],
  ['a key without its certificate', { 'tls.key': one.key }, /no file ".*tls\.crt"/],
  ['DER', { 'tls.crt': der, 'tls.key': one.key }, /convert DER to PEM/],
  ['an empty certificate', { 'tls.crt': '', 'tls.key': one.key }, /tls\.crt" is empty/],
  ['an empty key', { 'tls.crt': one.chain, 'tls.key': '' }, /tls\.key" is empty/],
  ['the text "null"', { 'tls.crt': one.chain, 'tls.key': 'null' }, /contains no private key/],
  ['a CA bundle in DER', { 'tls.crt': one.chain, 'tls.key': one.key, 'ca.crt': der }, /ca\.crt" contains no/],
  ['a CA bundle alone in DER', { 'ca.crt': der }, /ca\.crt" contains no certificate/],
  ['a pair of tomorrow', { 'tls.crt': later.chain, 'tls.key': later.key }, /not valid before/],
  ['a bundle', { 'credential-bundle.pem': `${one.key}${one.chain}` }, undefined],
  [
    'a bundle of two pairs',
    { 'credential-bundle.pem': `${other.key}${one.chain}` },
    /is not that of the first/,
  ],
  ['other keys and no certificate', { 'key.pem': one.key, 'app.yaml': 'a: 1' }, undefined],
])('of the certificates in a volume it says what TlsFiles says: %s', async (_, files, reason) => {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'tls'));
  volume.publish(files);
  const { code, page } = await doctor(volume.directory);
  const [found, ...others] = page.findings;
  expect(others).toEqual([]);
  expect([code, found?.id]).toEqual(reason ? [3, 'CERTIFICATE_REJECTED'] : [0, undefined]);
  expect(found?.message ?? '').toMatch(reason ?? '');
});

test('a certificate given alone is examined with the key beside it, and one that is mounted alone without', async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'server.crt'), one.chain);
  expect((await doctor(join(directory, 'server.crt'))).ids).toEqual([]);
  writeFileSync(join(directory, 'server.key'), other.key);
  for (const name of ['server.crt', 'server.key'])
    expect((await doctor(join(directory, name))).ids).toEqual(['CERTIFICATE_REJECTED']);
});

test('a chain that some clients reject is worth a note, and a CA bundle that has expired is more', async () => {
  const clock = { now: () => Date.now() - 4_000 * 86_400_000 };
  const root = new CertificateSigner({ name: 'root' });
  const directory = join(temporaryDirectory(), 'tls');
  mkdirSync(directory);
  const expired = new CertificateSigner({ name: 'old', issuer: root, clock });
  const { chain, key } = expired.issue({ notBefore: Date.now() - 1_000 });
  writeFileSync(join(directory, 'tls.crt'), chain);
  writeFileSync(join(directory, 'tls.key'), key);
  const old = new CertificateSigner({ name: 'old', clock }).certificate;
  writeFileSync(join(directory, 'ca.crt'), `${old}${root.certificate}`);
  const { code, ids, page } = await doctor(directory);
  expect([code, ids]).toEqual([0, ['CERTIFICATE_CHAIN']]);
  expect(page.findings[0]?.message).toMatch(/CN=old \(issued by CN=root\) .+tls\.crt" expired at/);
  writeFileSync(join(directory, 'ca.crt'), old);
  expect((await doctor(directory)).ids).toEqual(['CERTIFICATE_EXPIRED', 'CERTIFICATE_CHAIN']);
});

test('a manifest is read as Kubernetes reads it: a mode with a leading 0 is octal', async () => {
  const podWith = (mode: string): string => `kind: Pod
spec:
  securityContext: { runAsUser: 7 }
  volumes: [{ name: v, secret: { secretName: s, defaultMode: ${mode} } }]
  containers: []`;
  expect((await lint(podWith('0400'))).stdout).toContain('UNREADABLE');
  expect((await lint(podWith('0404'))).stdout).not.toContain('UNREADABLE');
});

test('what it prints of names can neither pass for a line of its own nor control the terminal', async () => {
  const name = 'm\u001b[2J\nnever    SUBPATH\u202e';
  const manifest = { kind: 'Secret', metadata: { name }, immutable: true };
  const { stdout } = await lint(JSON.stringify(manifest));
  expect(stdout).toContain('Secret/m\\u001b[2J\\u000anever    SUBPATH\\u202e is immutable');
  const file = join(temporaryDirectory(), name);
  writeFileSync(file, '');
  const page = await runMain(['doctor', file]);
  expect(page.stdout).toContain('m\\u001b[2J\\u000anever    SUBPATH\\u202e\n');
  expect(stdout + page.stdout).not.toMatch(/[\u001b\u202e]|^never +SUBPATH/m);
});

test('a remedy is printed once for all findings that it helps', async () => {
  const secret = (name: string): string =>
    `---\n{ kind: Secret, metadata: { name: ${name} }, immutable: true }\n`;
  const { stdout } = await lint(secret('a') + secret('b'));
  expect(stdout).toMatch(/^never +IMMUTABLE\n +Secret\/a .*\n +Secret\/b .*\n +Remove .*\n$/);
});

test('YAML whose aliases expand without end is refused, and a list in itself is read once', async () => {
  const bomb = ['a0: &a0 [x]'];
  for (let n = 1; n < 40; n += 1) bomb.push(`a${n}: &a${n} [*a${n - 1}, *a${n - 1}]`);
  const refused = await lint(`kind: X\n${bomb.join('\n')}\n`);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('m.yaml is not YAML')]);
  const cyclic = '&a\nkind: List\nitems: [*a, { kind: Secret, metadata: { name: s }, immutable: true }]\n';
  const read = await lint(cyclic);
  expect([read.code, read.stdout.match(/Secret\/s/g)]).toEqual([3, ['Secret/s']]);
});

test('a file that is read like a pipe is not waited for', async (context) => {
  const path = '/proc/kmsg';
  if (!existsSync(path)) context.skip();
  expect((await doctor(path)).page.path).toBe(path);
});
