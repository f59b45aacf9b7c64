/** The ValidatingAdmissionPolicy of `deploy/` in a real API server: types, defaults and CEL are those of Kubernetes. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';

import { expect, test } from 'vitest';
import { parse } from 'yaml';

import { binding, policy, POLICY_IDS, POLICY_PODS, workloadsOf } from '../support/policy-pods.js';
import { assetsDirectory, startControlPlane, type ControlPlane } from './control-plane.js';

const assets = assetsDirectory();

interface Answer {
  readonly status: number;
  readonly warnings: readonly string[];
  readonly text: string;
}

async function call(
  { url, ca, adminToken }: ControlPlane,
  method: string,
  path: string,
  body: object,
): Promise<Answer> {
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  const sent = request(url + path, { method, headers, ca }).end(JSON.stringify(body));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const warnings = response.headersDistinct['warning'] ?? [];
  return { status: response.statusCode ?? 0, warnings, text: await text(response) };
}

const POLICIES = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic';
const PATHS: Readonly<Record<string, string>> = {
  Pod: '/api/v1/namespaces/NAMESPACE/pods',
  Deployment: '/apis/apps/v1/namespaces/NAMESPACE/deployments',
  CronJob: '/apis/batch/v1/namespaces/NAMESPACE/cronjobs',
};

/** What a user would apply: the specification with what each kind requires besides. */
function objectOf(kind: string, spec: object): object {
  const labels = { app: 'a' };
  const template = (of: unknown, more = {}): object => ({
    metadata: { labels },
    spec: { ...(of as { template: { spec: object } }).template.spec, ...more },
  });
  const metadata = { name: 'a' };
  if (kind === 'Pod') return { metadata, spec };
  if (kind === 'Deployment')
    return { metadata, spec: { selector: { matchLabels: labels }, template: template(spec) } };
  const { jobTemplate } = spec as { jobTemplate: { spec: object } };
  const job = { template: template(jobTemplate.spec, { restartPolicy: 'Never' }) };
  return { metadata, spec: { schedule: '0 0 * * *', jobTemplate: { spec: job } } };
}

/** What an older API server drops from a pod, or refuses. */
const NEWER = /image: \{|fileKeyRef|podCertificate/;

type PolicyPod = (typeof POLICY_PODS)[number];

/** The pods of which the API server knows each field. */
async function knownPods(applyPod: (spec: object) => Promise<Answer>): Promise<PolicyPod[]> {
  const known: PolicyPod[] = [];
  for (const pod of POLICY_PODS) {
    const spec = parse(pod[0]) as object;
    const fields = [...JSON.stringify(spec).matchAll(/"\w+":/g)].map(([field]) => field);
    const { text: body } = await applyPod(spec);
    if (fields.every((field) => body.includes(field))) {
      known.push(pod);
    } else {
      expect(pod[0], body).toMatch(NEWER);
      console.warn(`Left out, since the API server does not know each field: ${pod[0]}`);
    }
  }
  return known;
}

test.skipIf(!assets)(
  'a real API server warns of the pods that the policy is about, refuses them if told so, and leaves out namespaces',
  { timeout: 300_000 },
  async () => {
    const cluster = await startControlPlane(assets ?? '');
    const created = async (path: string, body: object): Promise<void> =>
      expect(await call(cluster, 'POST', path, body)).toMatchObject({ status: 201 });
    const ignored = { 'resilient-watcher/policy': 'ignore' };
    for (const [name, labels] of [
      ['watched', {}],
      ['ignored', ignored],
    ] as const) {
      await created('/api/v1/namespaces', { metadata: { name, labels } });
      await created(`/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } });
    }
    await created(`${POLICIES}ies`, policy);
    await created(`${POLICIES}ybindings`, binding);

    const apply = (namespace: string, kind: string, spec: object): Promise<Answer> => {
      const path = `${PATHS[kind]?.replace('NAMESPACE', namespace)}?dryRun=All`;
      return call(cluster, 'POST', path, objectOf(kind, spec));
    };
    const found = (warnings: readonly string[]): string[] =>
      POLICY_IDS.filter((id) =>
        warnings.some((warning) => warning.includes(` '${binding.metadata.name}': ${id}: `)),
      );
    const wrong = parse(POLICY_PODS.find(([, ids]) => ids.includes('SUBPATH'))?.[0] ?? '') as object;
    // A policy counts a moment after it was stored.
    await expect
      .poll(async () => (await apply('watched', 'Pod', wrong)).warnings, { timeout: 60_000 })
      .not.toEqual([]);

    const pods = await knownPods((spec) => apply('watched', 'Pod', spec));
    const actual: unknown[] = [];
    const expected: unknown[] = [];
    for (const [yaml, ids] of pods) {
      for (const { kind, spec } of workloadsOf(parse(yaml) as object)) {
        const { status, warnings, text: body } = await apply('watched', kind, spec);
        expect(status, body).toBe(201);
        actual.push({ kind, yaml, ids: found(warnings) });
        expected.push({ kind, yaml, ids });
      }
    }
    expect(actual).toEqual(expected);
    expect((await apply('ignored', 'Pod', wrong)).warnings).toEqual([]);

    const deny = {
      ...binding,
      metadata: { name: 'deny' },
      spec: { ...binding.spec, validationActions: ['Deny'] },
    };
    await created(`${POLICIES}ybindings`, deny);
    await expect
      .poll(async () => (await apply('watched', 'Pod', wrong)).status, { timeout: 60_000 })
      .toBe(422);
    for (const [yaml, ids] of pods) {
      const { status, text: body } = await apply('watched', 'Pod', parse(yaml) as object);
      expect(status, body).toBe(ids.length > 0 ? 422 : 201);
      for (const id of ids) expect(body).toContain(`${id}: `);
    }
    expect(await apply('ignored', 'Pod', wrong)).toMatchObject({ status: 201 });
  },
);
