/** The objects of the part of the cluster test that runs `packages/csi/example` with a registrar. */
import type { V1CSIDriver, V1DaemonSet, V1Pod, V1Volume } from '@kubernetes/client-node';

import { observerContainer } from './objects.js';

/** What the example answers as its name. */
export const DRIVER = 'secrets.example.com';

/** The name of the pod, and of its only container. */
export const CSI_OBSERVER = 'library-csi';

const KUBELET = '/var/lib/kubelet';
const PLUGIN = `${KUBELET}/plugins/${DRIVER}`;
const PROVIDER_PORT = 8321;

/** The only object without a namespace: it must be deleted by its name. */
export const csiDriver: V1CSIDriver = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIDriver',
  metadata: { name: DRIVER },
  spec: {
    attachRequired: false,
    podInfoOnMount: true,
    requiresRepublish: true,
    tokenRequests: [{ audience: 'vault', expirationSeconds: 3600 }],
    volumeLifecycleModes: ['Ephemeral'],
  },
};

/** The driver, its registrar, and the provider of its secrets, on every node. */
export function csiDaemonSet(image: string, registrar: string): V1DaemonSet {
  const labels = { app: 'csi-driver' };
  const socket = { name: 'plugin', mountPath: '/csi' };
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'csi-driver' },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 5,
          containers: [
            {
              name: 'driver',
              image,
              imagePullPolicy: 'IfNotPresent',
              command: ['node', 'csi-driver/main.mjs'],
              env: [
                { name: 'CSI_ENDPOINT', value: 'unix:///csi/csi.sock' },
                { name: 'NODE_ID', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
                { name: 'PROVIDER_URL', value: `http://127.0.0.1:${PROVIDER_PORT}` },
              ],
              // It mounts a tmpfs where kubelet says, and kubelet has to see that.
              securityContext: { privileged: true, runAsUser: 0 },
              volumeMounts: [
                socket,
                { name: 'kubelet', mountPath: KUBELET, mountPropagation: 'Bidirectional' },
              ],
            },
            {
              name: 'registrar',
              image: registrar,
              args: ['--csi-address=/csi/csi.sock', `--kubelet-registration-path=${PLUGIN}/csi.sock`],
              securityContext: { runAsUser: 0 },
              volumeMounts: [socket, { name: 'registration', mountPath: '/registration' }],
            },
            {
              name: 'provider',
              image,
              imagePullPolicy: 'IfNotPresent',
              command: ['node', 'provider.mjs'],
              env: [
                { name: 'PORT', value: String(PROVIDER_PORT) },
                { name: 'FILE', value: '/etc/config/app.yaml' },
              ],
              volumeMounts: [{ name: 'config', mountPath: '/etc/config', readOnly: true }],
            },
          ],
          volumes: [
            hostFolder('plugin', PLUGIN, 'DirectoryOrCreate'),
            hostFolder('registration', `${KUBELET}/plugins_registry`, 'Directory'),
            hostFolder('kubelet', KUBELET, 'Directory'),
            { name: 'config', configMap: { name: 'config' } },
          ],
        },
      },
    },
  };
}

/** A pod that watches a volume of the driver. */
export function csiObserverPod(image: string, namespace: string): V1Pod {
  const observer = { name: CSI_OBSERVER, program: 'library', target: '/etc/csi/app.yaml' };
  const volumeMounts = [{ name: 'secrets', mountPath: '/etc/csi', readOnly: true }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: CSI_OBSERVER },
    spec: {
      serviceAccountName: 'observer',
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 5,
      securityContext: { runAsNonRoot: true, runAsUser: 1000 },
      containers: [Object.assign(observerContainer(observer, image, namespace), { volumeMounts })],
      volumes: [{ name: 'secrets', csi: { driver: DRIVER, readOnly: true } }],
    },
  };
}

function hostFolder(name: string, path: string, type: string): V1Volume {
  return { name, hostPath: { path, type } };
}
