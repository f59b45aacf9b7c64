/**
 * Runs in a pod with a pod certificate and a trust bundle: a server of this library, and clients of plain `node:tls` in a
 * process of their own, of which each belongs to one certificate authority.
 *
 *   CREDENTIALS   the projected volume, with `bundle.pem` and `ca.pem`
 *   SERVER_NAME   the DNS name in its certificate
 *   CLIENTS       the directory of the clients: `<name>-ca.pem` is the authority, `<name>.pem` a credential bundle by it
 *
 * Prints a line of JSON for each swap of the volume and each change that the server follows, and each second one with the
 * requests so far. A request is `wrong` when it was refused although its authority is in the trust bundle, or answered
 * although it is not. A request during a change is judged if its authority is in both bundles, or in neither. When an
 * authority is removed, earlier connections end: a request that is reset by that is `cut`, and its client asks again.
 */
import { fork } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, watch } from 'node:fs';
import { Agent, createServer, get } from 'node:https';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';

import { serveTls, TlsFiles } from 'resilient-watcher/tls';

const { CREDENTIALS: credentials, CLIENTS: clients, SERVER_NAME: servername, PORT: clientsOf } = process.env;

/** Comparable between processes, ms. */
const now = () => performance.timeOrigin + performance.now();

const identities = readdirSync(clients)
  .filter((name) => name.endsWith('-ca.pem'))
  .map((file) => {
    const name = file.slice(0, -'-ca.pem'.length);
    const read = (path) => readFileSync(join(clients, path), 'utf8');
    return { name, ca: read(file), bundle: read(`${name}.pem`) };
  });

function print(fields) {
  console.log(JSON.stringify({ who: 'certificates', at: Date.now(), ...fields }));
}

// ------------------------------------------------------------------------------------------- the clients

/** One request on a connection of its own. */
function handshake({ bundle }, { maxVersion, session }) {
  return new Promise((resolve) => {
    const start = now();
    let answer = '';
    let code;
    let latest;
    let isResumed = false;
    const ca = identities.map((identity) => identity.ca);
    const options = {
      port: Number(clientsOf),
      servername,
      ca,
      cert: bundle,
      key: bundle,
      maxVersion,
      session,
    };
    const socket = connect(options);
    socket.setTimeout(10_000, () => socket.destroy(new Error('no answer')));
    socket.on('secureConnect', () => (isResumed = socket.isSessionReused()));
    socket.on('session', (value) => (latest = value));
    socket.on('error', (error) => (code = error.code ?? error.message));
    socket.on('data', (chunk) => (answer += chunk));
    socket.on('close', () => {
      const isAccepted = answer.startsWith('HTTP/1.1 200');
      resolve({ start, since: start, end: now(), isAccepted, isResumed, session: latest, code });
    });
    socket.write(`GET / HTTP/1.1\r\nHost: ${servername}\r\nConnection: close\r\n\r\n`);
  });
}

/** One request on a connection that is kept, or on a new one if there is none. */
function ask({ bundle }, agent) {
  return new Promise((resolve) => {
    const start = now();
    const ca = identities.map((identity) => identity.ca);
    const options = {
      port: Number(clientsOf),
      servername,
      ca,
      cert: bundle,
      key: bundle,
      agent,
      timeout: 10_000,
    };
    const request = get(options, (response) => {
      const isResumed = response.socket.isSessionReused();
      response.resume().on('close', () => {
        const isAccepted = response.complete && response.statusCode === 200;
        resolve({ start, end: now(), isAccepted, isResumed, isKept: request.reusedSocket });
      });
    });
    let since = start;
    request.on('socket', (socket) => (since = socket.since ??= start));
    request.on('timeout', () => request.destroy(new Error('no answer')));
    request.on('error', (error) => {
      const code = error.code ?? error.message;
      resolve({ start, since, end: now(), isAccepted: false, isKept: request.reusedSocket, code });
    });
  });
}

async function keepTalking(identity) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (;;) {
    process.send({ ...(await ask(identity, agent)), name: identity.name });
    await sleep(20);
  }
}

async function keepAsking(identity, maxVersion, resumes) {
  let session;
  for (;;) {
    const { session: latest, ...result } = await handshake(identity, {
      maxVersion,
      session: resumes ? session : undefined,
    });
    // One that was refused keeps the session of the time when it was not.
    if (result.isAccepted && latest !== undefined) session = latest;
    process.send({ ...result, name: identity.name, isOffered: resumes && session !== undefined });
    await sleep(20);
  }
}

// -------------------------------------------------------------------------------------------- the server

/** From when to when the server took a new set, and the names of the authorities in it. */
const changes = [];
const counts = {};
const wrong = { count: 0, examples: [] };

const fingerprintsIn = (pem) =>
  (pem.match(/-----BEGIN CERTIFICATE-----[^]+?-----END CERTIFICATE-----/g) ?? []).map(
    (block) => new X509Certificate(block).fingerprint256,
  );
const fingerprintOf = new Map(
  identities.map(({ name, ca }) => [new X509Certificate(ca).fingerprint256, name]),
);
const namesIn = (pem) =>
  fingerprintsIn(pem).map((fingerprint) => fingerprintOf.get(fingerprint) ?? 'another');

/** Whether an authority was trusted during the whole request; undefined if that changed. */
function isTrusted({ name, start, end }) {
  const answers = changes
    .filter(({ from }, index) => from <= end && !(changes[index + 1]?.to < start))
    .map(({ trust }) => trust.includes(name));
  return new Set(answers).size === 1 ? answers[0] : undefined;
}

/** Whether a connection that began at `since`, before the removal of an authority, was ended by it. */
function isCut({ since, end, code }) {
  if (code !== 'ECONNRESET') return false;
  return changes.some(
    ({ from, to, trust }, index) =>
      since <= to && from <= end && changes[index - 1]?.trust.some((name) => !trust.includes(name)),
  );
}

function judge(result) {
  const { name, isAccepted, isKept = false, isResumed, isOffered, code } = result;
  const shouldPass = isTrusted(result);
  const accepted = isKept ? 'kept' : isResumed ? 'resumed' : 'full';
  const refused = shouldPass && isCut(result) ? 'cut' : isOffered ? 'refusedResumption' : 'refused';
  const kind = isAccepted ? accepted : refused;
  counts[name] ??= { full: 0, resumed: 0, kept: 0, refused: 0, refusedResumption: 0, cut: 0, unjudged: 0 };
  counts[name][shouldPass === undefined ? 'unjudged' : kind] += 1;
  if (shouldPass === undefined || shouldPass === isAccepted || kind === 'cut') return;
  wrong.count += 1;
  if (wrong.examples.length < 5) wrong.examples.push({ name, kind, code, trust: changes.at(-1).trust });
}

async function serve() {
  let seen;
  let files = [];
  let swappedAt;
  const look = () => {
    const revision = readlinkSync(join(credentials, '..data'));
    if (revision === seen) return;
    const at = now();
    seen = revision;
    const found = ['bundle.pem', 'ca.pem'].map((name) => readFileSync(join(credentials, name), 'utf8'));
    const isSame = (one, other) => one?.toSorted().join() === other?.toSorted().join();
    const [before, after] = [files, found].map(([bundle = '', ca = '']) => ({
      bundle,
      ca: fingerprintsIn(ca),
    }));
    const isNews = before.bundle !== after.bundle || !isSame(before.ca, after.ca);
    files = found;
    if (isNews) swappedAt = at;
    print({ event: 'swap', isNews, order: namesIn(found[1]), key: found[0].split('\n', 1)[0] });
  };
  // Called first, so that it runs before the listener of the library for the same event.
  watch(credentials, look);
  look();

  const tls = new TlsFiles({ bundle: join(credentials, 'bundle.pem'), ca: join(credentials, 'ca.pem') });
  const server = createServer({ requestCert: true }, (_request, response) => response.end('hello'));
  tls.on('rejected', ({ error }) => print({ event: 'rejected', code: error.code, message: error.message }));
  let from = now();
  const follow = ({ current }) => {
    const to = now();
    const trust = namesIn(String(current.ca));
    changes.push({ from, to, trust });
    const issuer = current.certificate.issuer;
    const delayMs = Number((to - swappedAt).toFixed(2));
    print({ event: 'change', trust, issuer, leaf: current.fingerprint256, delayMs });
  };
  // Before and after the listener of `serveTls()`.
  tls.on('change', () => {
    look();
    from = now();
  });
  const served = await serveTls(server, tls);
  follow({ current: await tls.get() });
  tls.on('change', follow);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const child = fork(import.meta.filename, { env: { ...process.env, PORT: String(server.address().port) } });
  child.on('message', judge);
  child.on('exit', (code) => print({ event: 'died', code }));
  setInterval(
    () =>
      print({
        event: 'handshakes',
        trust: changes.at(-1).trust,
        counts,
        wrong,
        served: served.status().changes,
      }),
    1_000,
  );
}

process.on('SIGTERM', () => process.exit());
if (clientsOf === undefined) await serve();
else {
  process.on('disconnect', () => process.exit());
  for (const identity of identities) {
    void keepTalking(identity);
    for (const version of ['TLSv1.2', 'TLSv1.3'])
      for (const resumes of [false, true]) void keepAsking(identity, version, resumes);
  }
}
