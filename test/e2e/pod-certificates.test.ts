/** The API of pod certificates in the testing kit, and in a real API server of Kubernetes 1.37 or later. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { json } from 'node:stream/consumers';

import { LocalApiServer } from '@resilient-watcher/local-api-server';
import { expect, onTestFinished, test } from 'vitest';

import { skip } from '../support/namespace.js';
import {
  podCertificateRequest,
  REFUSED_REQUESTS,
  refusedTrustBundles,
} from '../../packages/local-api-server/test/pod-certificate-request.js';
import { assetsDirectory, startControlPlane } from './control-plane.js';

const assets = assetsDirectory();

interface Server {
  readonly url: string;
  readonly ca: string;
  readonly token: string;
}

interface Answer {
  readonly code: number;
  readonly body: {
    readonly metadata: { readonly name: string };
    readonly spec: object;
    readonly status: object;
    readonly message?: string;
    readonly resources?: readonly { readonly name: string }[];
  };
}

async function call(
  { url, ca, token }: Server,
  method: string,
  path: string,
  body?: object,
): Promise<Answer> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const sent = request(`${url}/apis/certificates.k8s.io/v1${path}`, { method, headers, ca });
  sent.end(body && JSON.stringify(body));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return { code: response.statusCode ?? 0, body: (await json(response)) as Answer['body'] };
}

test.skipIf(!assets)(
  'a real API server takes what the LocalApiServer issues, and both refuse the same',
  { timeout: 300_000 },
  async (context) => {
    const { url, ca, adminToken } = await startControlPlane(assets ?? '');
    const real: Server = { url, ca, token: adminToken };
    const { body } = await call(real, 'GET', '');
    if (!body.resources?.some(({ name }) => name === 'podcertificaterequests'))
      skip(context, 'the API server has no PodCertificateRequest of certificates.k8s.io/v1');

    const local = await LocalApiServer.start();
    onTestFinished(() => local.close());
    const { token } = await local.mint('default', 'web');
    const kit: Server = { url: local.url, ca: local.caPem, token };

    const path = '/namespaces/default/podcertificaterequests';
    const sent = podCertificateRequest();
    const answers = await Promise.all([real, kit].map((server) => call(server, 'POST', path, sent)));
    const [asked, issued] = answers as [Answer, Answer];
    expect(answers.map(({ code }) => code)).toEqual([201, 201]);
    expect(issued.body.spec).toEqual(asked.body.spec);
    for (const { body } of answers) expect(body.metadata.name).toMatch(/^req-/);

    const { status } = issued.body;
    const signed = await call(real, 'PUT', `${path}/${asked.body.metadata.name}/status`, {
      ...asked.body,
      status,
    });
    expect(signed.code, signed.body.message).toBe(200);
    expect(signed.body.status).toEqual(status);

    for (const [field, more] of REFUSED_REQUESTS) {
      for (const server of [real, kit]) {
        const { code, body } = await call(server, 'POST', path, podCertificateRequest(more));
        expect([code, body.message]).toEqual([422, expect.stringContaining(field)]);
      }
    }

    const putReal = (name: string, trustBundle: string, signerName?: string): Promise<Answer> =>
      call(real, 'POST', '/clustertrustbundles', { metadata: { name }, spec: { signerName, trustBundle } });
    const { certificate } = local.podCertificateSigner;
    for (const [name, signerName] of [
      ['example.com:signer:one', 'example.com/signer'],
      ['one', undefined],
    ] as const) {
      const { code, body } = await putReal(name, certificate, signerName);
      expect(code, body.message).toBe(201);
      local.putTrustBundle(name, certificate, signerName);
      expect((await call(kit, 'GET', `/clustertrustbundles/${name}`)).body.spec).toEqual(body.spec);
    }
    for (const refused of refusedTrustBundles(certificate)) {
      expect((await putReal(...refused)).code, refused[0]).toBe(422);
      expect(() => local.putTrustBundle(...refused)).toThrow(TypeError);
    }
  },
);
