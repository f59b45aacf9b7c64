/** `npx vitest run --project cluster test/cluster`: the manifests of `deploy/kubernetes`, applied to a cluster, do what they promise. */
import {
  ApiextensionsV1Api,
  AuthenticationV1Api,
  AuthorizationV1Api,
  KubeConfig,
  type V1Pod,
  type V1ResourceAttributes,
} from '@kubernetes/client-node';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';

import { skip } from '../support/namespace.js';
import { missingIn } from './certificates.js';
import { DeployStage } from './deploy-stage.js';
import { kustomized, manifestsIn } from './manifests.js';
import { ifThere } from './namespace.js';
import { clusterSettings } from './settings.js';

const settings = clusterSettings();

const LIMIT_MS = 20 * 60_000;

/** How many lines of a log say that the program has acted. */
function actions(log: string): number {
  return log.split('\n').filter((line) => line.includes('"event":"succeeded"')).length;
}

describe.skipIf(!settings)('deploy/kubernetes', { timeout: LIMIT_MS }, () => {
  if (!settings) return;

  test('nginx serves each revision of its ConfigMap, and the last good one while it is invalid', async () => {
    await using stage = await DeployStage.create(settings, 'restricted');
    const base = kustomized();
    if (!base) console.warn('Without Kustomize: neither kubectl nor kustomize is on the PATH');
    await stage.apply(base ?? manifestsIn('nginx-sidecar.yaml'));
    await stage.untilReady();
    const pods = await stage.pods();
    expect(pods).toHaveLength(2);
    const each = async (what: string, holds: (pod: V1Pod) => Promise<boolean>): Promise<void> => {
      for (const pod of pods) await stage.until(`${pod.metadata?.name}: ${what}`, () => holds(pod));
    };
    const serves = (body: string): Promise<void> =>
      each(`serves ${body}`, async (pod) => (await stage.served(pod, 8080, '/')) === `${body}\n`);
    const reloads = (text: string): Promise<void> =>
      stage.setConfigMap('nginx-conf', { 'default.conf': `server { listen 8080; location / { ${text} } }` });

    await serves('hello');
    await reloads('return 200 "first\\n";');
    await serves('first');
    await reloads('return 200');
    await each('has tried the wrong one', async (pod) => actions(await stage.log(pod, 'reload')) >= 2);
    await serves('first');
    await reloads('return 200 "second\\n";');
    await serves('second');

    for (const pod of pods) {
      expect(await stage.served(pod, 9533, '/livez')).toContain('"live":true');
      expect(await stage.served(pod, 9533, '/metrics')).toContain('resilient_watcher_changes_total');
    }
    expect(await stage.restarts()).toBe(0);
  });

  test('Prometheus loads each revision of its ConfigMap, triggered by a webhook', async () => {
    await using stage = await DeployStage.create(settings, 'restricted');
    const publish = (revision: number): Promise<void> =>
      stage.setConfigMap('prometheus-conf', {
        'prometheus.yml': `global: { external_labels: { revision: "${revision}" } }\n`,
      });
    await publish(0);
    await stage.apply(manifestsIn('webhook-sidecar.yaml'));
    await stage.untilReady();
    const [pod] = await stage.pods();
    if (!pod) throw new Error('There is no pod');
    for (const revision of [0, 1, 2]) {
      if (revision > 0) await publish(revision);
      await stage.until(
        `Prometheus has revision ${revision}`,
        async () =>
          /revision: \\?"(\d)/.exec((await stage.served(pod, 9090, '/api/v1/status/config')) ?? '')?.[1] ===
          String(revision),
      );
    }
    expect(await stage.restarts()).toBe(0);
  });

  test('the application waits for its certificate, and is restarted for a new configuration and a new certificate, but not its container', async () => {
    await using stage = await DeployStage.create(settings, 'restricted');
    await stage.setConfigMap('app', { revision: '0' });
    await stage.apply(manifestsIn('run-as-pid-1.yaml'));
    const waiting = async () => {
      const [pod] = await stage.pods();
      return { pod, state: pod?.status?.initContainerStatuses?.[0]?.state };
    };
    await stage.until('the init container runs', async () => !!(await waiting()).state?.running);
    await stage.setSecret('app-tls', { 'tls.crt': 'a' });
    await stage.until('the init container has ended', async () => !!(await waiting()).state?.terminated);
    const { pod, state } = await waiting();
    expect(state?.terminated?.exitCode).toBe(0);
    if (!pod) throw new Error('There is no pod');
    await stage.untilReady();

    const lines = async (): Promise<Record<string, unknown>[]> =>
      [...(await stage.log(pod, 'app')).matchAll(/^{"event".*$/gm)].map(
        ([line]) => JSON.parse(line) as Record<string, unknown>,
      );
    const last = async (expected: object): Promise<void> =>
      stage.until(`the application has printed ${JSON.stringify(expected)}`, async () => {
        const printed = (await lines()).at(-1);
        return Object.entries(expected).every(([key, value]) => printed?.[key] === value);
      });
    await last({ event: 'started', config: '0', certificate: 'a' });
    await stage.setSecret('app-tls', { 'tls.crt': 'b' });
    await last({ event: 'started', config: '0', certificate: 'b' });
    await stage.setConfigMap('app', { revision: '1' });
    await last({ event: 'started', config: '1', certificate: 'b' });
    expect(await stage.served(pod, 9533, '/livez')).toContain('"live":true');
    expect(await stage.restarts()).toBe(0);
  });

  test('the kubeconfig on the node has a token that works, and its writer may mint nothing else', async () => {
    const { hostPath, hostNetwork } = settings;
    await using stage = await DeployStage.create(
      settings,
      hostPath || hostNetwork ? 'privileged' : 'baseline',
    );
    const { namespace } = stage;
    const path = '/host/etc/cni/net.d/calico-kubeconfig';
    await stage.setServiceAccount('calico-cni-plugin');
    await stage.apply(manifestsIn('cni-kubeconfig.yaml'));
    await stage.untilReady();
    const pods = await stage.pods();
    stage.atEnd(async () => {
      for (const pod of pods) await stage.run(pod, 'kubeconfig', 'rm', '-f', path);
    });
    for (const pod of pods) {
      await stage.until('the kubeconfig is written', async () =>
        (await stage.log(pod, 'kubeconfig')).includes('"event":"delivered"'),
      );
      const written = parse(await stage.run(pod, 'kubeconfig', 'cat', path)) as {
        users: [{ user: { token: string } }];
      };
      expect(await userOf(settings.kubeConfig, written.users[0].user.token)).toBe(
        `system:serviceaccount:${namespace}:calico-cni-plugin`,
      );
      expect(await stage.run(pod, 'kubeconfig', 'stat', '-c', '%a', path)).toBe('600\n');
    }

    const token = { namespace, verb: 'create', resource: 'serviceaccounts', subresource: 'token' };
    const user = `system:serviceaccount:${namespace}:cni-kubeconfig`;
    const may = (attributes: V1ResourceAttributes): Promise<boolean> =>
      isAllowed(settings.kubeConfig, user, attributes);
    expect(await may({ ...token, name: 'calico-cni-plugin' })).toBe(true);
    expect(await may({ ...token, name: 'cni-kubeconfig' })).toBe(false);
    expect(await may({ ...token, name: 'calico-cni-plugin', namespace: 'kube-system' })).toBe(false);
    expect(await may({ ...token, verb: 'get', name: 'calico-cni-plugin' })).toBe(false);
    for (const resource of ['secrets', 'configmaps', 'pods', 'nodes']) {
      expect(await may({ namespace, verb: 'get', resource })).toBe(false);
    }
  });

  test('the pod with a certificate of its own is accepted where the cluster has pod certificates', async (context) => {
    const missing = await missingIn(settings);
    if (missing !== undefined) skip(context, `the cluster has no ${missing}`);
    await using stage = await DeployStage.create(settings, 'restricted');
    await stage.apply(manifestsIn('pod-certificate.yaml'));
    await stage.until('the pod is accepted', async () => (await stage.pods()).length > 0);
  });

  test('the ServiceMonitor is accepted where the Prometheus Operator is installed', async (context) => {
    const crds = settings.kubeConfig.makeApiClient(ApiextensionsV1Api);
    const name = 'servicemonitors.monitoring.coreos.com';
    if (!(await ifThere(() => crds.readCustomResourceDefinition({ name })))) {
      skip(context, `the cluster has no ${name}`);
    }
    await using stage = await DeployStage.create(settings, 'restricted');
    await stage.apply(manifestsIn('service-monitor.yaml'));
  });
});

/** Whose token it is, says the API server. */
async function userOf(admin: KubeConfig, token: string): Promise<string | undefined> {
  const cluster = admin.getCurrentCluster();
  if (!cluster) throw new Error('The kubeconfig has no cluster');
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromClusterAndUser(cluster, { name: 'bearer', token });
  const api = kubeConfig.makeApiClient(AuthenticationV1Api);
  const review = await api.createSelfSubjectReview({ body: {} });
  return review.status?.userInfo?.username;
}

/** Whether RBAC allows a user something. */
async function isAllowed(
  admin: KubeConfig,
  user: string,
  resourceAttributes: V1ResourceAttributes,
): Promise<boolean> {
  const api = admin.makeApiClient(AuthorizationV1Api);
  // Every ServiceAccount is also in these groups.
  const groups = ['system:serviceaccounts', 'system:authenticated'];
  const body = { spec: { user, groups, resourceAttributes } };
  return (await api.createSubjectAccessReview({ body })).status?.allowed ?? false;
}
