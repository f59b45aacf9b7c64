/** Two pods whose certificates and roots are rotated, as a cluster does it. */
import { createServer } from 'node:https';
import { join } from 'node:path';

import {
  CertificateSigner,
  podCertificateFiles,
  trustBundleFile,
  type IssuedCertificate,
} from '@resilient-watcher/local-api-server';
import { KubeletVolume } from 'resilient-watcher/testing';
import { serveTls, TlsFiles, type ServedTls } from 'resilient-watcher/tls';
import { expect, onTestFinished } from 'vitest';

import { rounds } from './rounds.js';
import { temporaryDirectory } from './temporary-directory.js';
import { listen } from './tls-clients.js';

const ROTATIONS = rounds(6, 240);
/** The root of the mesh is replaced so often: added, then used, then the old one removed. */
const STAGES = 6;

/** What somebody sees whose root is about to be removed, and how it is looked at again when it is. */
type Leaving = (leaving: IssuedCertificate, trusted: string) => Promise<() => Promise<void>>;

export interface Mesh {
  readonly server: TlsFiles;
  readonly client: TlsFiles;
  /** Rotates key, chain and root; before a root is used or removed, each of `load` has arrived with the set before. */
  readonly rotate: (
    load: readonly { readonly results: readonly unknown[] }[],
    leaving?: Leaving,
  ) => Promise<void>;
}

export async function createMesh(swap: 'rename' | 'remove'): Promise<Mesh> {
  const [server, client] = [pod(swap), pod(swap)];
  let old = new CertificateSigner({ name: 'root 0' });
  const issue = (signer: CertificateSigner): IssuedCertificate => signer.issue({ dnsNames: ['localhost'] });
  const publishBoth = async (
    signer: CertificateSigner,
    roots: CertificateSigner[],
    seed: number,
  ): Promise<void> => {
    const trusted = roots.map(({ certificate }) => certificate);
    // A cluster adds a root everywhere before it is used, and uses the new one everywhere before the old one is removed.
    await Promise.all([server, client].map((one) => one.publish(issue(signer), trusted, seed)));
  };
  await publishBoth(old, [old], 0);

  const rotate: Mesh['rotate'] = async (load, leaving) => {
    /** Until nobody is on his way who has begun with the set before. */
    const arrived = async (): Promise<void> => {
      const done = load.map(({ results }) => results.length);
      await expect
        .poll(() => load.every(({ results }, index) => results.length > (done[index] ?? 0) + 1))
        .toBe(true);
    };
    for (let rotation = 1; rotation <= ROTATIONS; rotation += 1) {
      if (rotation % STAGES !== 0) {
        await publishBoth(old, [old], rotation);
        continue;
      }
      const next = new CertificateSigner({ name: `root ${rotation}` });
      const lookAgain = await leaving?.(issue(old), `${old.certificate}${next.certificate}`);
      await publishBoth(old, [old, next], rotation);
      await arrived();
      await publishBoth(next, [next, old], rotation);
      await arrived();
      await publishBoth(next, [next], rotation);
      await lookAgain?.();
      old = next;
    }
  };
  return { server: server.files, client: client.files, rotate };
}

/** A server of https that asks for certificates, and keeps idle connections. */
export async function serveHello(files: TlsFiles): Promise<{ served: ServedTls; port: number }> {
  const https = createServer({ requestCert: true, keepAliveTimeout: 0 }, (_request, response) =>
    response.end('hello'),
  );
  return { served: await serveTls(https, files), port: await listen(https) };
}

/** A pod with a credential bundle and a trust bundle, as kubelet mounts them. */
function pod(swap: 'rename' | 'remove'): {
  files: TlsFiles;
  publish: (issued: IssuedCertificate, roots: string[], seed: number) => Promise<void>;
} {
  const volume = new KubeletVolume(join(temporaryDirectory(), 'credentials'), { swap });
  const files = new TlsFiles({ bundle: volume.path('bundle.pem'), ca: volume.path('ca.pem') });
  onTestFinished(() => files.close());
  const publish = async (issued: IssuedCertificate, roots: string[], seed: number): Promise<void> => {
    const previous = files.current;
    volume.publish({
      ...podCertificateFiles(issued, { credentialBundlePath: 'bundle.pem' }),
      'ca.pem': trustBundleFile(roots, { seed }),
    });
    if (files.state === 'idle') await files.start();
    else await files.changed({ previous });
  };
  return { files, publish };
}
